package com.mindspore;

import com.mindspore.config.MSContext;
import com.mindspore.config.ModelType;
import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.BuildRequests;
import com.mindspore.internal.ConfigFile;
import com.mindspore.internal.ContextState;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Failures;
import com.mindspore.internal.Log;
import com.mindspore.internal.Secrets;
import java.nio.MappedByteBuffer;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A model for one caller at a time: build it, fill the tensors of {@link #getInputs}, {@link
 * #predict}, and read those of {@link #getOutputs}.
 *
 * <p>It may be used from several threads, but calls follow each other and the inputs are shared;
 * for requests at the same time there is {@link ModelParallelRunner}. A model that is forgotten is
 * released when the collector finds it.
 */
public class Model implements AutoCloseable {
  private static final int MOST_OF_A_BYTE = 0xFF;

  private final Failures failures = new Failures();
  private final Map<String, Map<String, String>> config = new LinkedHashMap<>();
  private BuiltModel built; // null: not there

  /** A model that is not built yet. */
  public Model() {}

  /**
   * For programs of the original, which wrap a native pointer here. There are none: the model is
   * not built.
   *
   * @param sharedPtr 0
   */
  public Model(long sharedPtr) {
    if (sharedPtr != 0) {
      Log.severe("a Model cannot be made of the pointer " + sharedPtr + "; build it from its file");
    }
  }

  /**
   * Loads a model from its file.
   *
   * @param modelPath the file
   * @param modelType a number of {@link ModelType}
   * @param context the device and its options; it may be freed afterwards
   * @return whether it worked
   */
  public boolean build(String modelPath, int modelType, MSContext context) {
    return build(modelPath, modelType, context, null, null, null);
  }

  /**
   * Loads a model from memory.
   *
   * @param buffer the bytes of the file, all of the buffer; it is not needed afterwards
   * @param modelType a number of {@link ModelType}
   * @param context the device and its options; it may be freed afterwards
   * @return whether it worked
   */
  public boolean build(MappedByteBuffer buffer, int modelType, MSContext context) {
    return build(buffer, modelType, context, null, null, null);
  }

  /**
   * Loads an encrypted model from its file.
   *
   * @param modelPath the file
   * @param modelType a number of {@link ModelType}
   * @param context the device and its options; it may be freed afterwards
   * @param decKey the key, a char for each byte; null: the model is not encrypted
   * @param decMode "AES-GCM" or "AES-CBC"
   * @param croptoLibPath not needed, and not looked at
   * @return whether it worked
   */
  public boolean build(String modelPath, int modelType, MSContext context, char[] decKey,
      String decMode, String croptoLibPath) {
    return failures.did(() -> {
      if (modelPath == null) {
        throw Errors.wrong("build got null for the path of the model");
      }
      start(BuildRequests.ofFile(modelPath, checked(modelType)), context, decKey, decMode);
    });
  }

  /**
   * Loads an encrypted model from memory.
   *
   * @param buffer the bytes of the file, all of the buffer; it is not needed afterwards
   * @param modelType a number of {@link ModelType}
   * @param context the device and its options; it may be freed afterwards
   * @param decKey the key, a char for each byte; null: the model is not encrypted
   * @param decMode "AES-GCM" or "AES-CBC"
   * @param croptoLibPath not needed, and not looked at
   * @return whether it worked
   */
  public boolean build(MappedByteBuffer buffer, int modelType, MSContext context, char[] decKey,
      String decMode, String croptoLibPath) {
    return failures.did(() -> {
      if (buffer == null) {
        throw Errors.wrong("build got null for the bytes of the model");
      }
      start(BuildRequests.ofContent(buffer, checked(modelType)), context, decKey, decMode);
    });
  }

  /**
   * Runs the model on its inputs, which must have data; {@link #getOutputs} has the results.
   *
   * @return whether it worked
   */
  public boolean predict() {
    return failures.did(() -> {
      synchronized (this) {
        built("predict").predict();
      }
    });
  }

  /**
   * The same as {@link #predict}.
   *
   * @return whether it worked
   */
  public boolean runStep() {
    return predict();
  }

  /**
   * Gives all inputs other shapes; their data is gone then.
   *
   * @param inputs the tensors of {@link #getInputs}
   * @param dims a shape for each of them
   * @return whether it worked; if not, the model is as it was
   */
  public boolean resize(List<MSTensor> inputs, int[][] dims) {
    return failures.did(() -> {
      synchronized (this) {
        built("resize").resize(inputs, dims);
      }
    });
  }

  /**
   * The inputs of the model.
   *
   * @return the same tensors every time, but for those that were freed; none when the model is not
   *     built
   */
  public synchronized List<MSTensor> getInputs() {
    return built == null ? Collections.emptyList() : built.inputs();
  }

  /**
   * The outputs of the model, with the last results, if any.
   *
   * @return new tensors at each call, to be freed by the caller; none when the model is not built
   */
  public synchronized List<MSTensor> getOutputs() {
    return built == null ? Collections.emptyList() : built.outputs();
  }

  /**
   * One of {@link #getInputs}.
   *
   * @param tensorName the name of the input
   * @return null when there is none of that name
   */
  public synchronized MSTensor getInputByTensorName(String tensorName) {
    return built == null ? null : built.input(tensorName);
  }

  /**
   * One of {@link #getOutputs}, to be freed by the caller.
   *
   * @param tensorName the name of the output
   * @return null when there is none of that name
   */
  public synchronized MSTensor getOutputByTensorName(String tensorName) {
    return built == null ? null : built.output(tensorName);
  }

  /**
   * Nothing: nodes are not known by name any more when a model is loaded.
   *
   * @param nodeName anything
   * @return an empty list
   */
  public List<MSTensor> getOutputsByNodeName(String nodeName) {
    return Collections.emptyList();
  }

  /**
   * The names of the outputs.
   *
   * @return in the order of {@link #getOutputs}; none when the model is not built
   */
  public synchronized List<String> getOutputTensorNames() {
    return built == null ? Collections.emptyList() : built.outputNames();
  }

  /**
   * Reads a configuration file, before the model is built. Its entries count before those that were
   * given earlier.
   *
   * @param configPath a file of {@code [section]} and {@code key=value} lines
   * @return whether it worked
   */
  public boolean loadConfig(String configPath) {
    return failures.did(() -> {
      if (configPath == null) {
        throw Errors.wrong("loadConfig got null for the path of the file");
      }
      addConfig("loadConfig", ConfigFile.read(configPath));
    });
  }

  /**
   * Sets entries of the configuration, before the model is built.
   *
   * @param section the section that they are in
   * @param config names and values
   * @return whether it worked
   */
  public boolean updateConfig(String section, HashMap<String, String> config) {
    return failures.did(() -> {
      if (section == null || config == null) {
        throw Errors.wrong("updateConfig got null, wanted a section and a map of its entries");
      }
      Map<String, String> entries = new LinkedHashMap<>(config);
      entries.values().removeIf(value -> value == null);
      entries.remove(null);
      addConfig("updateConfig", new LinkedHashMap<>(Map.of(section, entries)));
    });
  }

  /**
   * Why the last call of this thread failed.
   *
   * @return what went wrong and what to do; empty when nothing did
   */
  public String lastError() {
    return failures.last();
  }

  /**
   * From now on, throw an {@link MSException} where false would be returned.
   *
   * @return this
   */
  public Model throwing() {
    failures.setThrowing();
    return this;
  }

  /**
   * Releases the model and its inputs, after the call that is under way; harmless when repeated.
   */
  public synchronized void free() {
    if (built != null) {
      built.free();
      built = null;
    }
  }

  /** The same as {@link #free}. */
  @Override
  public void close() {
    free();
  }

  private BuiltModel built(String doing) {
    if (built == null) {
      throw Errors.closed(doing + " needs a model that is built, and not freed; call build first");
    }
    return built;
  }

  private static int checked(int modelType) {
    if (modelType < ModelType.MT_MINDIR || modelType > ModelType.MT_MINDIR_LITE) {
      throw Errors.wrong("the type of the model is " + modelType + ", wanted one of ModelType");
    }
    if (modelType == ModelType.MT_AIR || modelType == ModelType.MT_OM) {
      throw Errors.unavailable("models of type "
          + (modelType == ModelType.MT_AIR ? "MT_AIR" : "MT_OM")
          + " cannot be run here; export the model as MindIR, or as ONNX");
    }
    return modelType;
  }

  private synchronized void start(
      BuildRequest request, MSContext context, char[] decKey, String decMode) {
    if (built != null) {
      throw Errors.wrong("the model is built already; free it first, or make another Model");
    }
    ContextState state = context == null ? null : Secrets.context.apply(context);
    if (state == null) {
      throw Errors.wrong(
          "build needs a context that is initialised; got null, or one without init");
    }
    if (decKey != null) {
      request.key = bytes(decKey);
      request.keyMode = decMode == null ? "" : decMode;
    }
    ConfigFile.merge(config, request.config);
    BuildRequests.addContext(state, request);
    built = new BuiltModel(this, request);
  }

  private static byte[] bytes(char[] key) {
    byte[] bytes = new byte[key.length];
    for (int i = 0; i < key.length; ++i) {
      if (key[i] > MOST_OF_A_BYTE) {
        throw Errors.wrong("char " + i + " of the key is no byte; wanted a char for each byte");
      }
      bytes[i] = (byte) key[i];
    }
    return bytes;
  }

  private synchronized void addConfig(String doing, Map<String, Map<String, String>> more) {
    if (built != null) {
      throw Errors.wrong(doing + " comes too late: the model is built");
    }
    ConfigFile.makePathsAbsolute(more, "");
    Map<String, Map<String, String>> together = new LinkedHashMap<>();
    ConfigFile.merge(config, together);
    ConfigFile.merge(more, together);
    ConfigFile.checkRoom(together);
    config.clear();
    config.putAll(together);
  }
}
