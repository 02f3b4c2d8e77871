import com.mindspore.MSTensor;
import com.mindspore.ModelParallelRunner;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.RunnerConfig;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A side of benchmarks/java.py: a ModelParallelRunner, used by as many threads as it is told to.
 *
 * <p>Run: JavaClient MODEL. Every line "CLIENTS SECONDS" on stdin is answered by one on stdout:
 * requests per second, and the median time of a request in microseconds.
 */
public final class JavaClient {
  private JavaClient() {}

  /** One client: its own tensors, filled once; a request after the other until the time is over. */
  private static long[] ask(ModelParallelRunner runner, long end) {
    List<MSTensor> inputs = runner.getInputs();
    for (MSTensor input : inputs) {
      ByteBuffer ones = ByteBuffer.allocateDirect((int) input.size());
      ones.order(ByteOrder.LITTLE_ENDIAN);
      while (ones.hasRemaining()) {
        ones.putFloat(1);
      }
      check(input.setData(ones));
    }
    long[] times = new long[1024];
    int count = 0;
    long start = System.nanoTime();
    do {
      List<MSTensor> outputs = new ArrayList<>();
      check(runner.predict(inputs, outputs));
      outputs.forEach(MSTensor::free);
      long now = System.nanoTime();
      if (count == times.length) {
        times = Arrays.copyOf(times, 2 * count);
      }
      times[count++] = now - start;
      start = now;
    } while (start < end);
    inputs.forEach(MSTensor::free);
    return Arrays.copyOf(times, count);
  }

  private static void burst(ModelParallelRunner runner, int clients, double seconds)
      throws ExecutionException, InterruptedException {
    ExecutorService threads = Executors.newFixedThreadPool(clients);
    long start = System.nanoTime();
    long end = start + (long) (seconds * 1e9);
    List<Future<long[]>> asking = new ArrayList<>();
    for (int client = 0; client < clients; client++) {
      asking.add(threads.submit(() -> ask(runner, end)));
    }
    List<long[]> times = new ArrayList<>();
    for (Future<long[]> client : asking) {
      times.add(client.get());
    }
    double wall = (System.nanoTime() - start) / 1e9;
    threads.shutdown();
    long[] all = times.stream().flatMapToLong(Arrays::stream).sorted().toArray();
    System.out.println(all.length / wall + " " + all[all.length / 2] / 1e3);
  }

  /** What went wrong is in the log already. */
  private static void check(boolean isDone) {
    if (!isDone) {
      System.exit(1);
    }
  }

  public static void main(String[] args) throws ExecutionException, InterruptedException {
    MSContext context = new MSContext();
    RunnerConfig config = new RunnerConfig();
    ModelParallelRunner runner = new ModelParallelRunner();
    check(context.init() && context.addDeviceInfo(DeviceType.DT_CPU, false, 0));
    check(config.init(context) && runner.init(args[0], config));
    Scanner lines = new Scanner(System.in);
    while (lines.hasNext()) {
      burst(runner, Integer.parseInt(lines.next()), Double.parseDouble(lines.next()));
    }
    runner.free();
  }
}
