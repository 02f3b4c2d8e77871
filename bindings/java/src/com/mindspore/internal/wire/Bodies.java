package com.mindspore.internal.wire;

import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Built;
import com.mindspore.internal.Description;
import com.mindspore.internal.Errors;
import com.mindspore.internal.TensorInfo;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The body of each message; docs/wire.md describes it byte by byte. */
final class Bodies {
  private Bodies() {}

  /**
   * Writes the body of BUILD.
   *
   * @param content the model's bytes, if they are in no file
   * @param configPath for who does not read a configuration file on this side
   */
  static void writeBuild(
      Writer out, BuildRequest request, List<WireTensor> content, String configPath) {
    out.u8(request.isRunner ? 1 : 0);
    out.u32(request.modelType);
    out.path(request.path);
    WireTensor.writeAll(out, content, "contents");
    out.count(request.settings.size(), "settings");
    for (BuildRequest.Setting setting : request.settings) {
      out.text(setting.name());
      out.text(setting.value());
    }
    out.path(configPath);
    writeConfig(out, request.config);
    if (request.key.length > Limits.KEY) {
      throw Errors.wrong(
          "the key has " + request.key.length + " bytes, wanted at most " + Limits.KEY);
    }
    out.blob(ByteBuffer.wrap(request.key));
    out.text(request.keyMode);
  }

  private static void writeConfig(Writer out, Map<String, Map<String, String>> config) {
    int count = config.values().stream().mapToInt(Map::size).sum();
    out.count(count, "entries of a configuration");
    config.forEach((section, entries) -> entries.forEach((name, value) -> {
      out.text(section);
      out.text(name);
      out.text(value);
    }));
  }

  /** A limit of 0 is none. */
  static void writePredict(
      Writer out, int model, CallOptions options, Place room, List<WireTensor> inputs) {
    out.u32(model);
    out.u64(options.limitMs() * 1000);
    out.u8(options.priority());
    out.u32(room.block());
    out.u64(room.offset());
    out.u64(room.size());
    WireTensor.writeAll(out, inputs, "inputs");
  }

  static void writeResize(Writer out, int model, List<long[]> shapes) {
    out.u32(model);
    out.count(shapes.size(), "shapes");
    shapes.forEach(out::dims);
  }

  static void writeFree(Writer out, List<Integer> blocks) {
    out.count(blocks.size(), "blocks");
    blocks.forEach(out::u32);
  }

  static Built built(Reader in) {
    int model = in.u32("the model");
    if (model == 0) {
      throw Errors.wire("the worker built a model and gave it number 0");
    }
    Description description = description(in);
    int count = in.count("notes", 4);
    List<String> notes = new ArrayList<>(count);
    for (int i = 0; i < count; ++i) {
      notes.add(in.text("a note"));
    }
    return new Built(model, description, notes);
  }

  static Description description(Reader in) {
    return new Description(infos(in, "inputs"), infos(in, "outputs"));
  }

  private static List<TensorInfo> infos(Reader in, String what) {
    return WireTensor.readAll(in, what).stream().map(WireTensor::info).toList();
  }

  static List<Made> made(Reader in) {
    int count = in.count("blocks", Made.BYTES);
    List<Made> found = new ArrayList<>(count);
    for (int i = 0; i < count; ++i) {
      found.add(new Made(in.u32("a block"), in.u32("a descriptor"), in.u64("the size of a block")));
    }
    return found;
  }
}
