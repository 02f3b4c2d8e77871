package com.mindspore.config;

import com.mindspore.internal.Errors;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

/**
 * The settings of an Ascend device, to be given to {@link
 * MSContext#addDeviceInfo(AscendDeviceInfo)}, which copies them. A plain bean: it is not checked
 * before then, needs no {@code free()}, and is not meant to be changed by several threads at once.
 */
public class AscendDeviceInfo {
  private int deviceID = 0;
  private int rankID = 0;
  private String provider = "";
  private String insertOpConfigPath = "";
  private String inputFormat = "";
  private String inputShape = "";
  private HashMap<Integer, ArrayList<Integer>> inputShapeMap = new HashMap<>();
  private ArrayList<Integer> dynamicBatchSize = new ArrayList<>();
  private String dynamicImageSize = "";
  private int outputType = 0;
  private String precisionMode = "enforce_fp16";
  private String opSelectImplMode = "high_performance";
  private String fusionSwitchConfigPath = "";
  private String bufferOptimizeMode = "l2_optimize";

  /** The settings with their defaults. */
  public AscendDeviceInfo() {}

  /**
   * What kind of device this is.
   *
   * @return always {@link DeviceType#DT_ASCEND}
   */
  public int getDeviceType() {
    return DeviceType.DT_ASCEND;
  }

  /**
   * The number of the device.
   *
   * @return what was set
   */
  public int getDeviceID() {
    return deviceID;
  }

  /**
   * Sets the number of the device.
   *
   * @param deviceID the new value
   */
  public void setDeviceID(int deviceID) {
    this.deviceID = deviceID;
  }

  /**
   * The number of this process among those that share a model.
   *
   * @return what was set
   */
  public int getRankID() {
    return rankID;
  }

  /**
   * Sets the number of this process among those that share a model.
   *
   * @param rankID the new value
   */
  public void setRankID(int rankID) {
    this.rankID = rankID;
  }

  /**
   * Who runs the model: "ge", or empty for the default.
   *
   * @return what was set
   */
  public String getProvider() {
    return provider;
  }

  /**
   * Sets who runs the model: "ge", or empty for the default.
   *
   * @param provider the new value
   */
  public void setProvider(String provider) {
    this.provider = provider;
  }

  /**
   * A file that says what to do with images first (AIPP); empty: none.
   *
   * @return what was set
   */
  public String getInsertOpConfigPath() {
    return insertOpConfigPath;
  }

  /**
   * Sets a file that says what to do with images first (AIPP); empty: none.
   *
   * @param insertOpConfigPath the new value
   */
  public void setInsertOpConfigPath(String insertOpConfigPath) {
    this.insertOpConfigPath = insertOpConfigPath;
  }

  /**
   * The layout of the inputs, such as "NCHW"; empty: that of the model.
   *
   * @return what was set
   */
  public String getInputFormat() {
    return inputFormat;
  }

  /**
   * Sets the layout of the inputs, such as "NCHW"; empty: that of the model.
   *
   * @param inputFormat the new value
   */
  public void setInputFormat(String inputFormat) {
    this.inputFormat = inputFormat;
  }

  /**
   * Shapes of the inputs, such as "x:1,3,224,224;y:1,10"; empty: those of the model.
   *
   * @return what was set
   */
  public String getInputShape() {
    return inputShape;
  }

  /**
   * Sets shapes of the inputs, such as "x:1,3,224,224;y:1,10"; empty: those of the model.
   *
   * @param inputShape the new value
   */
  public void setInputShape(String inputShape) {
    this.inputShape = inputShape;
  }

  /**
   * Shapes of the inputs by their index.
   *
   * @return what was set
   */
  public HashMap<Integer, ArrayList<Integer>> getInputShapeMap() {
    return inputShapeMap;
  }

  /**
   * Sets shapes of the inputs by their index; has no effect, and a line of the log says so. See
   * {@link #setInputShape}.
   *
   * @param inputShapeMap the new value
   */
  public void setInputShapeMap(HashMap<Integer, ArrayList<Integer>> inputShapeMap) {
    this.inputShapeMap = inputShapeMap;
  }

  /**
   * The batch sizes that the model is built for.
   *
   * @return what was set
   */
  public ArrayList<Integer> getDynamicBatchSize() {
    return dynamicBatchSize;
  }

  /**
   * Sets the batch sizes that the model is built for.
   *
   * @param dynamicBatchSize the new value
   */
  public void setDynamicBatchSize(ArrayList<Integer> dynamicBatchSize) {
    this.dynamicBatchSize = dynamicBatchSize;
  }

  /**
   * The image sizes that the model is built for, such as "64,64;128,128"; empty: one only.
   *
   * @return what was set
   */
  public String getDynamicImageSize() {
    return dynamicImageSize;
  }

  /**
   * Sets the image sizes that the model is built for, such as "64,64;128,128"; empty: one only.
   *
   * @param dynamicImageSize the new value
   */
  public void setDynamicImageSize(String dynamicImageSize) {
    this.dynamicImageSize = dynamicImageSize;
  }

  /**
   * The type of the outputs, a number of {@link DataType}; 0: that of the model.
   *
   * @return what was set
   */
  public int getOutputType() {
    return outputType;
  }

  /**
   * Sets the type of the outputs, a number of {@link DataType}; 0: that of the model. Another one
   * has no effect, and a line of the log says so.
   *
   * @param outputType the new value
   */
  public void setOutputType(int outputType) {
    this.outputType = outputType;
  }

  /**
   * How exactly it computes, such as "enforce_fp16" or "enforce_origin".
   *
   * @return what was set
   */
  public String getPrecisionMode() {
    return precisionMode;
  }

  /**
   * Sets how exactly it computes, such as "enforce_fp16" or "enforce_origin".
   *
   * @param precisionMode the new value
   */
  public void setPrecisionMode(String precisionMode) {
    this.precisionMode = precisionMode;
  }

  /**
   * "high_performance" or "high_precision".
   *
   * @return what was set
   */
  public String getOpSelectImplMode() {
    return opSelectImplMode;
  }

  /**
   * Sets "high_performance" or "high_precision".
   *
   * @param opSelectImplMode the new value
   */
  public void setOpSelectImplMode(String opSelectImplMode) {
    this.opSelectImplMode = opSelectImplMode;
  }

  /**
   * A file that says which fusions to leave out; empty: none.
   *
   * @return what was set
   */
  public String getFusionSwitchConfigPath() {
    return fusionSwitchConfigPath;
  }

  /**
   * Sets a file that says which fusions to leave out; empty: none.
   *
   * @param fusionSwitchConfigPath the new value
   */
  public void setFusionSwitchConfigPath(String fusionSwitchConfigPath) {
    this.fusionSwitchConfigPath = fusionSwitchConfigPath;
  }

  /**
   * "l1_optimize", "l2_optimize" or "off_optimize".
   *
   * @return what was set
   */
  public String getBufferOptimizeMode() {
    return bufferOptimizeMode;
  }

  /**
   * Sets "l1_optimize", "l2_optimize" or "off_optimize".
   *
   * @param bufferOptimizeMode the new value
   */
  public void setBufferOptimizeMode(String bufferOptimizeMode) {
    this.bufferOptimizeMode = bufferOptimizeMode;
  }

  /** Another one with the same values; what is null in this one is empty there. */
  AscendDeviceInfo copy() {
    AscendDeviceInfo copy = new AscendDeviceInfo();
    copy.deviceID = deviceID;
    copy.rankID = rankID;
    copy.provider = text(provider);
    copy.insertOpConfigPath = text(insertOpConfigPath);
    copy.inputFormat = text(inputFormat);
    copy.inputShape = text(inputShape);
    copy.dynamicImageSize = text(dynamicImageSize);
    copy.outputType = outputType;
    copy.precisionMode = text(precisionMode);
    copy.opSelectImplMode = text(opSelectImplMode);
    copy.fusionSwitchConfigPath = text(fusionSwitchConfigPath);
    copy.bufferOptimizeMode = text(bufferOptimizeMode);
    if (inputShapeMap != null) {
      for (Map.Entry<Integer, ArrayList<Integer>> input : inputShapeMap.entrySet()) {
        if (input.getKey() == null || input.getValue() == null) {
          throw Errors.wrong("inputShapeMap has a null: " + inputShapeMap);
        }
        copy.inputShapeMap.put(input.getKey(), numbers("inputShapeMap", input.getValue()));
      }
    }
    if (dynamicBatchSize != null) {
      copy.dynamicBatchSize = numbers("dynamicBatchSize", dynamicBatchSize);
    }
    return copy;
  }

  private static String text(String given) {
    return given == null ? "" : given;
  }

  private static ArrayList<Integer> numbers(String name, ArrayList<Integer> given) {
    if (given.contains(null)) {
      throw Errors.wrong(name + " has a null: " + given);
    }
    return new ArrayList<>(given);
  }
}
