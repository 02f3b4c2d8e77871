package com.mindspore.internal.wire;

import com.mindspore.MSException;
import com.mindspore.check.Check;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Built;
import com.mindspore.internal.Description;
import com.mindspore.internal.TensorInfo;
import com.mindspore.internal.wire.Vectors.Field;
import com.mindspore.internal.wire.Vectors.Part;
import com.mindspore.internal.wire.Vectors.Vector;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;

/**
 * The library held against the test vectors: what it writes, and what it makes of what it reads.
 */
public final class VectorsTest {
  private VectorsTest() {}

  public static void requestsAreMadeAgainByteByByte() {
    int frames = 0;
    for (Vector vector : Vectors.all()) {
      for (Part part : vector.parts()) {
        if (!part.side.equals("client") || !part.verdict.equals("good")) {
          continue;
        }
        if (!part.isFrame()) {
          Check.equal(part.encoded(), bytes(Greeting.hello(part.of("token").bytes())));
          continue;
        }
        Message message = Message.of((int) part.number("frame.message"));
        Writer out = new Writer(Frame.HEADER_BYTES);
        remake(part, message, out);
        ByteBuffer frame = Frame.headed(out.written(), message, part.number("frame.request"));
        Check.equal(part.encoded(), bytes(frame));
        ++frames;
      }
    }
    Check.that(frames >= 16, "only " + frames + " requests");
  }

  public static void answersAreUnderstood() {
    int answers = 0;
    for (Vector vector : Vectors.all()) {
      if (vector.parts().size() != 2 || !vector.parts().get(1).verdict.equals("good")) {
        continue;
      }
      Part asked = vector.parts().get(0);
      Part told = vector.parts().get(1);
      ByteBuffer all = ByteBuffer.wrap(told.encoded());
      if (!told.isFrame()) {
        Greeting.Welcome welcome = Greeting.welcome(all);
        Check.equal(told.number("pid"), welcome.pid());
        Check.equal(told.of("token").bytes(), welcome.token());
        continue;
      }
      Frame.Header header = Frame.header(all);
      Check.equal(asked.number("frame.request"), header.request());
      Check.equal(all.limit() - Frame.HEADER_BYTES, header.size());
      checkAnswer(Message.of((int) asked.number("frame.message")), told);
      ++answers;
    }
    Check.that(answers >= 16, "only " + answers + " answers");
  }

  public static void errorsKeepCodeKindAndWords() {
    for (Vector vector : Vectors.named("error-")) {
      Part part = vector.parts().get(0);
      MSException error = Frame.error(new Reader(ByteBuffer.wrap(part.body())));
      Check.equal((int) part.number("code"), error.code());
      Check.equal(part.text("kind"), error.kind());
      Check.that(error.getMessage().startsWith(part.text("message")), error.getMessage());
      Check.contains(error.getMessage(), part.text("detail"));
    }
  }

  public static void greetingsThatMakeNoSenseAreRefused() throws Exception {
    List<Vector> all = new ArrayList<>(Vectors.named("bad-welcome"));
    all.addAll(Vectors.named("refused-full"));
    for (Vector vector : all) {
      Part part = vector.parts().get(vector.parts().size() - 1);
      try (Ends ends = new Ends(part.encoded(), false)) {
        MSException error = Check.throwsA(MSException.class, ends::greet);
        Check.contains(error.getMessage(), part.reason);
        boolean isFull = vector.name().startsWith("refused-full");
        Check.equal(isFull ? "ResourceError" : "WireError", error.kind());
      }
    }
  }

  public static void headersThatMakeNoSenseAreRefused() {
    for (String name : List.of("magic", "message", "reserved", "length-over", "length-huge")) {
      ByteBuffer bytes = ByteBuffer.wrap(Vectors.first("bad-frame-" + name).encoded());
      MSException error = Check.throwsA(MSException.class, () -> Frame.header(bytes));
      Check.equal("WireError", error.kind());
    }
  }

  public static void aConnectionThatEndsInsideOfAFrameIsLost() throws Exception {
    for (String name : List.of("bad-frame-short", "bad-frame-header")) {
      try (Ends ends = new Ends(Vectors.first(name).encoded(), true)) {
        Check.contains(ends.lost(), "closed the connection");
      }
    }
  }

  public static void tensorsThatMakeNoSenseAreRefused() {
    int head = 33; // of a PREDICT
    for (Vector vector : Vectors.named("bad-tensor-")) {
      Part part = vector.parts().get(0);
      Reader in = new Reader(ByteBuffer.wrap(part.body()));
      in.take(head, "the head of PREDICT");
      // names are shown as well as they can be, and who has no such block, or no data, finds later
      if (List.of("name-utf8", "block", "none")
              .stream()
              .anyMatch(odd -> vector.name().equals("bad-tensor-" + odd + ".txt"))) {
        WireTensor.readAll(in, "inputs");
      } else {
        MSException error =
            Check.throwsA(MSException.class, () -> WireTensor.readAll(in, "inputs"));
        Check.equal("WireError", error.kind());
      }
    }
  }

  private static void remake(Part part, Message message, Writer out) {
    switch (message) {
      case BUILD -> remakeBuild(part, out);
      case PREDICT -> {
        Place room = new Place((int) part.number("room.block"), part.number("room.offset"),
            part.number("room.length"));
        int model = (int) part.number("model");
        CallOptions options =
            new CallOptions(part.number("timeout_us") / 1000, (int) part.number("priority"));
        Bodies.writePredict(out, model, options, room, tensorsOf(part, "inputs"));
      }
      case RESIZE -> {
        List<long[]> shapes = new ArrayList<>();
        for (int i = 0; i < part.number("shapes"); ++i) {
          shapes.add(part.dims("shapes." + i));
        }
        Bodies.writeResize(out, (int) part.number("model"), shapes);
      }
      case FREE -> {
        List<Integer> blocks = new ArrayList<>();
        for (int i = 0; i < part.number("blocks"); ++i) {
          blocks.add((int) part.number("blocks." + i));
        }
        Bodies.writeFree(out, blocks);
      }
      case UPDATE_WEIGHTS, DERIVE -> { // which the library has no function for
        out.u32((int) part.number("model"));
        out.u32((int) part.number("groups"));
        for (int i = 0; i < part.number("groups"); ++i) {
          WireTensor.writeAll(out, tensorsOf(part, "groups." + i), "weights");
        }
      }
      default -> remakeFields(part, out);
    }
  }

  private static void remakeBuild(Part part, Writer out) {
    BuildRequest request = new BuildRequest();
    request.isRunner = part.number("kind") == 1;
    request.modelType = (int) part.number("model_type");
    request.path = part.text("path");
    for (int i = 0; i < part.number("settings"); ++i) {
      String at = "settings." + i;
      request.settings.add(
          new BuildRequest.Setting(part.text(at + ".name"), part.text(at + ".value")));
    }
    for (int i = 0; i < part.number("config"); ++i) {
      String at = "config." + i;
      request.config.computeIfAbsent(part.text(at + ".section"), section -> new LinkedHashMap<>())
          .put(part.text(at + ".name"), part.text(at + ".value"));
    }
    request.key = part.blob("key");
    request.keyMode = part.text("key_mode");
    Bodies.writeBuild(out, request, tensorsOf(part, "content"), part.text("config_path"));
  }

  /** Requests that consist of plain fields. */
  private static void remakeFields(Part part, Writer out) {
    for (Field field : part.fields) {
      if (field.name().startsWith("frame.")) {
        continue;
      }
      switch (field.type()) {
        case "text" -> out.text(part.text(field.name()));
        case "u32" -> out.u32((int) part.number(field.name()));
        case "u64" -> out.u64(part.number(field.name()));
        default -> throw new AssertionError(field.type());
      }
    }
  }

  private static TensorInfo infoOf(Part part, String at) {
    int type = (int) part.number(at + ".type");
    return new TensorInfo(part.text(at + ".name"), type, part.dims(at + ".dims"));
  }

  private static List<WireTensor> tensorsOf(Part part, String list) {
    List<WireTensor> tensors = new ArrayList<>();
    for (int i = 0; i < part.number(list); ++i) {
      String at = list + "." + i;
      long where = part.number(at + ".place");
      ByteBuffer data = where == 1 ? ByteBuffer.wrap(part.blob(at + ".data")) : null;
      Place place = null;
      if (where == 2) {
        int block = (int) part.number(at + ".block");
        place = new Place(block, part.number(at + ".offset"), part.number(at + ".length"));
      }
      tensors.add(new WireTensor(infoOf(part, at), data, place));
    }
    return tensors;
  }

  private static void checkAnswer(Message request, Part part) {
    Reader body = new Reader(ByteBuffer.wrap(part.body()));
    switch (request) {
      case BUILD, DERIVE -> {
        Built built = Bodies.built(body);
        Check.equal((int) part.number("model"), built.model());
        checkDescription(part, built.description());
        Check.equal((int) part.number("notes"), built.notes().size());
        for (int i = 0; i < built.notes().size(); ++i) {
          Check.equal(part.text("notes." + i), built.notes().get(i));
        }
      }
      case PREDICT -> {
        checkMade(part, Bodies.made(body));
        checkTensors(tensorsOf(part, "outputs"), WireTensor.readAll(body, "outputs"));
      }
      case DESCRIBE, RESIZE -> checkDescription(part, Bodies.description(body));
      case ALLOCATE -> checkMade(part, Bodies.made(body));
      case INFO -> Check.equal(part.text("value"), body.text("a fact"));
      case STATISTICS -> Check.equal(part.text("statistics"), body.text("statistics"));
      case CANCEL -> Check.equal((int) part.number("answer"), body.u8("an answer"));
      default -> {
      }
    }
    Check.throwsA(MSException.class, () -> body.u8("what is left"));
  }

  private static void checkDescription(Part part, Description found) {
    checkInfos(part, "inputs", found.inputs());
    checkInfos(part, "outputs", found.outputs());
  }

  private static void checkInfos(Part part, String list, List<TensorInfo> found) {
    Check.equal((int) part.number(list), found.size());
    for (int i = 0; i < found.size(); ++i) {
      checkInfo(infoOf(part, list + "." + i), found.get(i));
    }
  }

  private static void checkInfo(TensorInfo wanted, TensorInfo found) {
    Check.equal(wanted.name(), found.name());
    Check.equal(wanted.type(), found.type());
    Check.equal(wanted.shape(), found.shape());
  }

  private static void checkMade(Part part, List<Made> found) {
    Check.equal((int) part.number("blocks"), found.size());
    for (int i = 0; i < found.size(); ++i) {
      String at = "blocks." + i;
      int descriptor = (int) part.number(at + ".descriptor");
      int block = (int) part.number(at + ".block");
      Check.equal(new Made(block, descriptor, part.number(at + ".size")), found.get(i));
    }
  }

  private static void checkTensors(List<WireTensor> wanted, List<WireTensor> found) {
    Check.equal(wanted.size(), found.size());
    for (int i = 0; i < found.size(); ++i) {
      checkInfo(wanted.get(i).info(), found.get(i).info());
      Check.equal(wanted.get(i).data(), found.get(i).data());
      Check.equal(wanted.get(i).place(), found.get(i).place());
    }
  }

  private static byte[] bytes(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }
}
