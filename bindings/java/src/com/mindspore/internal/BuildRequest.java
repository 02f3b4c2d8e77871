package com.mindspore.internal;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What to build; docs/wire.md, BUILD. */
public final class BuildRequest {
  /** A setting of a context: its name, such as "cpu.thread_num", and its value. */
  public record Setting(String name, String value) {}

  /** Whether it is a ModelParallelRunner, not a Model. */
  public boolean isRunner;

  /** The number of docs/wire.md: 0 MindIR, 3 ONNX, 4 MindIR of MindSpore Lite. */
  public int modelType;

  /** The model's file, absolute; empty when there is content. */
  public String path = "";

  /** The bytes of the model, from position to limit; null when they are in a file. */
  public ByteBuffer content;

  /** Of two with the same name the last one counts. */
  public final List<Setting> settings = new ArrayList<>();

  /** Entries of a configuration, by section and name; paths in it are absolute. */
  public final Map<String, Map<String, String>> config = new LinkedHashMap<>();

  /** Decrypts the model; empty when it is not encrypted. */
  public byte[] key = new byte[0];

  /** How it is encrypted; empty: AES-GCM. */
  public String keyMode = "";
}
