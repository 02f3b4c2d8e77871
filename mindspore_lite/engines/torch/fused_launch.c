/* A run on a card from its first copy to its end, as one call that needs nothing of Python.
 *
 * Rows of the host are put together in pinned memory by a few threads, sent to the card piece by
 * piece while the next ones are put together, the recorded run is launched and waited for. The
 * functions of CUDA come as addresses, so nothing of it is needed to compile this.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
  CHUNK = 128 << 10,  /* bytes that a thread copies at a time; guess */
  PIECE = 8 << 20,    /* bytes that are sent at a time; guess */
  WORTH_IT = 1 << 20, /* bytes from which on the other threads are woken; guess */
  SPINS = 2000,       /* looks at the others before sleeping: some 20 microseconds; guess */
  ANY_DIRECTION = 4   /* cudaMemcpyDefault */
};

typedef struct {
  int (*copy)(void *to, const void *from, size_t size, int direction, void *stream);
  int (*launch)(void *graph, void *stream);
  int (*synchronize)(void *stream);
  int (*record)(void *event, void *stream);
  int (*wait)(void *stream, void *event, unsigned flags);
} Card;

typedef struct {
  uint64_t from, size;
} Row;

typedef struct {
  uint64_t count, staged, to; /* staged 0: the rows lie on the card already */
} Input;

typedef struct {
  uint64_t from, to, size;
} Back;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t called, left;
  pthread_t *threads;
  int helpers, ends;
  uint64_t job;      /* counts up */
  int open;          /* others may still join the job */
  atomic_int inside; /* how many of them are in it */
  const Row *rows;
  size_t count, longest; /* chunks of the longest row */
  char *to;
  atomic_size_t next;
} Team;

static void copied(char *to, const char *from, size_t size) {
#ifdef __SSE2__
  if ((uintptr_t)to % 16 == 0) { /* past the caches: the card reads it next, not this core */
    size_t at = 0;
    for (; at + 64 <= size; at += 64) {
      __m128i a = _mm_loadu_si128((const __m128i *)(from + at));
      __m128i b = _mm_loadu_si128((const __m128i *)(from + at + 16));
      __m128i c = _mm_loadu_si128((const __m128i *)(from + at + 32));
      __m128i d = _mm_loadu_si128((const __m128i *)(from + at + 48));
      _mm_stream_si128((__m128i *)(to + at), a);
      _mm_stream_si128((__m128i *)(to + at + 16), b);
      _mm_stream_si128((__m128i *)(to + at + 32), c);
      _mm_stream_si128((__m128i *)(to + at + 48), d);
    }
    memcpy(to + at, from + at, size - at);
    _mm_sfence();
    return;
  }
#endif
  memcpy(to, from, size);
}

/* Copy chunks of the job until none is left; all rows of a job are equally long. */
static void take_part(Team *team) {
  size_t chunks = team->count * team->longest;
  for (;;) {
    size_t number = atomic_fetch_add(&team->next, 1);
    if (number >= chunks) return;
    const Row *row = &team->rows[number / team->longest];
    size_t start = number % team->longest * CHUNK;
    size_t size = row->size - start < CHUNK ? row->size - start : CHUNK;
    copied(team->to + number / team->longest * row->size + start,
           (const char *)(uintptr_t)row->from + start, size);
  }
}

static void *helper(void *argument) {
  Team *team = argument;
  uint64_t seen = 0;
  pthread_mutex_lock(&team->lock);
  while (!team->ends) {
    if (!team->open || team->job == seen) {
      pthread_cond_wait(&team->called, &team->lock);
      continue;
    }
    seen = team->job;
    atomic_fetch_add(&team->inside, 1);
    pthread_mutex_unlock(&team->lock);
    take_part(team);
    pthread_mutex_lock(&team->lock);
    if (atomic_fetch_sub(&team->inside, 1) == 1) pthread_cond_signal(&team->left);
  }
  pthread_mutex_unlock(&team->lock);
  return NULL;
}

/* Put rows of one length together; nobody else is inside of a job when this returns. */
static void gather(Team *team, const Row *rows, size_t count, char *to) {
  if (rows->size * count < WORTH_IT) { /* within the caches, where the card finds it, too */
    for (size_t i = 0; i < count; i++)
      memcpy(to + i * rows->size, (const void *)(uintptr_t)rows[i].from, rows->size);
    return;
  }
  pthread_mutex_lock(&team->lock);
  team->rows = rows;
  team->count = count;
  team->to = to;
  team->longest = (rows->size + CHUNK - 1) / CHUNK;
  atomic_store(&team->next, 0);
  team->job++;
  team->open = 1;
  pthread_cond_broadcast(&team->called);
  pthread_mutex_unlock(&team->lock);
  take_part(team);
  pthread_mutex_lock(&team->lock);
  team->open = 0; /* who comes now comes too late */
  pthread_mutex_unlock(&team->lock);
  for (int i = 0; i < SPINS && atomic_load(&team->inside); i++) {
#ifdef __SSE2__
    _mm_pause();
#endif
  }
  pthread_mutex_lock(&team->lock);
  while (atomic_load(&team->inside)) pthread_cond_wait(&team->left, &team->lock);
  pthread_mutex_unlock(&team->lock);
}

/* How many of the rows make the next piece: of one length, and not much longer than PIECE. */
static size_t piece(const Row *rows, size_t count) {
  size_t found = 1;
  while (found < count && rows[found].size == rows->size && found * rows->size < PIECE) found++;
  return found;
}

static int sent(Team *team, const Card *card, const Input *input, const Row *rows, void *stream) {
  char *staged = (char *)(uintptr_t)input->staged, *to = (char *)(uintptr_t)input->to;
  for (size_t done = 0; done < input->count;) {
    size_t count = staged ? piece(rows + done, input->count - done) : 1;
    size_t size = rows[done].size * count;
    const void *from = (const void *)(uintptr_t)rows[done].from;
    if (staged) {
      gather(team, rows + done, count, staged);
      from = staged;
      staged += size;
    }
    int error = card->copy(to, from, size, ANY_DIRECTION, stream);
    if (error) return error;
    to += size;
    done += count;
  }
  return 0;
}

static int asked(Team *team, const Card *card, const Input *inputs, size_t count, const Row *rows,
                 void *graph, const Back *backs, size_t returned, void *stream) {
  int error;
  for (size_t i = 0; i < count; rows += inputs[i++].count)
    if ((error = sent(team, card, &inputs[i], rows, stream))) return error;
  if ((error = card->launch(graph, stream))) return error;
  for (size_t i = 0; i < returned; i++) {
    void *to = (void *)(uintptr_t)backs[i].to;
    const void *from = (const void *)(uintptr_t)backs[i].from;
    if ((error = card->copy(to, from, backs[i].size, ANY_DIRECTION, stream))) return error;
  }
  return 0;
}

/* The number of the first error, 0 if there was none. Nothing is under way on return.
 * event: not NULL, then the run begins when what `before` was asked for by now is done. */
int one_run(Team *team, const Card *card, const Input *inputs, size_t count, const Row *rows,
            void *graph, const Back *backs, size_t returned, void *stream, void *before,
            void *event) {
  int error = 0;
  if (event && !(error = card->record(event, before))) error = card->wait(stream, event, 0);
  if (!error) error = asked(team, card, inputs, count, rows, graph, backs, returned, stream);
  int last = card->synchronize(stream);
  return error ? error : last;
}

void end_team(Team *team) {
  pthread_mutex_lock(&team->lock);
  team->ends = 1;
  pthread_cond_broadcast(&team->called);
  pthread_mutex_unlock(&team->lock);
  for (int i = 0; i < team->helpers; i++) pthread_join(team->threads[i], NULL);
  free(team->threads);
  free(team);
}

/* NULL if there is no memory; fewer threads than asked for if there are no more. */
Team *new_team(int threads) {
  Team *team = calloc(1, sizeof *team);
  if (!team || !(team->threads = calloc(threads, sizeof *team->threads))) {
    free(team);
    return NULL;
  }
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->called, NULL);
  pthread_cond_init(&team->left, NULL);
  while (team->helpers < threads - 1 &&
         !pthread_create(&team->threads[team->helpers], NULL, helper, team))
    team->helpers++;
  return team;
}
