package com.mindspore;

import com.mindspore.check.Check;
import com.mindspore.config.AscendDeviceInfo;
import com.mindspore.config.CpuBindMode;
import com.mindspore.config.DataType;
import com.mindspore.config.DeviceType;
import com.mindspore.config.MSContext;
import com.mindspore.config.MindsporeLite;
import com.mindspore.config.ModelType;
import com.mindspore.config.RunnerConfig;
import com.mindspore.config.Version;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * The public interface is that of the original, to the letter, and our additions to it: a program
 * that was written for it compiles, and so does a class that extends one of these.
 */
public final class ApiTest {
  private static final String OURS = """
      String lastError()
      void close()
      """;

  private ApiTest() {}

  public static void contextsHaveTheirMethods() {
    has(MSContext.class, OURS + """
        MSContext()
        MSContext throwing()
        boolean init()
        boolean init(int,int)
        boolean init(int,int,boolean)
        boolean addDeviceInfo(int,boolean)
        boolean addDeviceInfo(int,boolean,int)
        boolean addDeviceInfo(AscendDeviceInfo)
        void free()
        long getMSContextPtr()
        void setThreadNum(int)
        int getThreadNum()
        void setInterOpParallelNum(int)
        int getInterOpParallelNum()
        void setThreadAffinity(int)
        int getThreadAffinityMode()
        void setThreadAffinity(ArrayList<Integer>)
        ArrayList<Integer> getThreadAffinityCoreList()
        void setEnableParallel(boolean)
        boolean getEnableParallel()
        """);
  }

  public static void ascendSettingsHaveTheirMethods() {
    has(AscendDeviceInfo.class, """
        AscendDeviceInfo()
        int getDeviceType()
        int getDeviceID()
        void setDeviceID(int)
        int getRankID()
        void setRankID(int)
        String getProvider()
        void setProvider(String)
        String getInsertOpConfigPath()
        void setInsertOpConfigPath(String)
        String getInputFormat()
        void setInputFormat(String)
        String getInputShape()
        void setInputShape(String)
        HashMap<Integer,ArrayList<Integer>> getInputShapeMap()
        void setInputShapeMap(HashMap<Integer,ArrayList<Integer>>)
        ArrayList<Integer> getDynamicBatchSize()
        void setDynamicBatchSize(ArrayList<Integer>)
        String getDynamicImageSize()
        void setDynamicImageSize(String)
        int getOutputType()
        void setOutputType(int)
        String getPrecisionMode()
        void setPrecisionMode(String)
        String getOpSelectImplMode()
        void setOpSelectImplMode(String)
        String getFusionSwitchConfigPath()
        void setFusionSwitchConfigPath(String)
        String getBufferOptimizeMode()
        void setBufferOptimizeMode(String)
        """);
  }

  public static void runnerConfigurationsHaveTheirMethods() {
    has(RunnerConfig.class, OURS + """
        RunnerConfig()
        RunnerConfig throwing()
        boolean init()
        boolean init(MSContext)
        void setWorkersNum(int)
        void setConfigInfo(String,HashMap<String,String>)
        void setConfigPath(String)
        String getConfigPath()
        void setDeviceIds(ArrayList<Integer>)
        ArrayList<Integer> getDeviceIds()
        long getRunnerConfigPtr()
        void free()
        """);
  }

  public static void runnersHaveTheirMethods() {
    has(ModelParallelRunner.class, OURS + """
        ModelParallelRunner()
        ModelParallelRunner throwing()
        boolean init(String,RunnerConfig)
        boolean init(String)
        boolean predict(List<MSTensor>,List<MSTensor>)
        boolean predict(List<MSTensor>,List<MSTensor>,int)
        List<MSTensor> getInputs()
        List<MSTensor> getOutputs()
        long getModelParallelRunnerPtr()
        void free()
        """);
  }

  public static void tensorsHaveTheirMethods() {
    has(MSTensor.class, OURS + """
        MSTensor()
        MSTensor(long)
        MSTensor throwing()
        static MSTensor createTensor(String,int,int[],ByteBuffer)
        static MSTensor createTensor(String,Object)
        static MSTensor of(String,int,int[],ByteBuffer)
        static MSTensor of(String,Object)
        int[] getShape()
        int getDataType()
        long size()
        int elementsNum()
        String tensorName()
        Object getData()
        byte[] getByteData()
        float[] getFloatData()
        int[] getIntData()
        long[] getLongData()
        ByteBuffer getByteBuffer()
        boolean setShape(int[])
        boolean setData(ByteBuffer)
        boolean setData(byte[])
        boolean setData(float[])
        boolean setData(int[])
        boolean setData(long[])
        void free()
        long getMSTensorPtr()
        """);
  }

  public static void modelsHaveTheirMethods() {
    has(Model.class, OURS + """
        Model()
        Model(long)
        Model throwing()
        boolean build(String,int,MSContext)
        boolean build(MappedByteBuffer,int,MSContext)
        boolean build(String,int,MSContext,char[],String,String)
        boolean build(MappedByteBuffer,int,MSContext,char[],String,String)
        boolean predict()
        boolean runStep()
        boolean resize(List<MSTensor>,int[][])
        List<MSTensor> getInputs()
        List<MSTensor> getOutputs()
        MSTensor getInputByTensorName(String)
        MSTensor getOutputByTensorName(String)
        List<MSTensor> getOutputsByNodeName(String)
        List<String> getOutputTensorNames()
        boolean loadConfig(String)
        boolean updateConfig(String,HashMap<String,String>)
        void free()
        """);
  }

  public static void constantsHaveTheirValues() {
    has(DeviceType.class, """
        DeviceType()
        int DT_CPU = 0
        int DT_GPU = 1
        int DT_NPU = 2
        int DT_ASCEND = 3
        """);
    has(CpuBindMode.class, """
        CpuBindMode()
        int NO_BIND = 0
        int HIGHER_CPU = 1
        int MID_CPU = 2
        """);
    has(ModelType.class, """
        ModelType()
        int MT_MINDIR = 0
        int MT_AIR = 1
        int MT_OM = 2
        int MT_ONNX = 3
        int MT_MINDIR_LITE = 4
        int MT_MINDIR_OPT = 4
        """);
    has(DataType.class, """
        DataType()
        int kNumberTypeBool = 30
        int kNumberTypeInt = 31
        int kNumberTypeInt8 = 32
        int kNumberTypeInt16 = 33
        int kNumberTypeInt32 = 34
        int kNumberTypeInt64 = 35
        int kNumberTypeUInt = 36
        int kNumberTypeUInt8 = 37
        int kNumberTypeUInt16 = 38
        int kNumberTypeUInt32 = 39
        int kNumberTypeUInt64 = 40
        int kNumberTypeFloat = 41
        int kNumberTypeFloat16 = 42
        int kNumberTypeFloat32 = 43
        int kNumberTypeFloat64 = 44
        """);
    has(MindsporeLite.class, """
        MindsporeLite()
        long POINTER_DEFAULT_VALUE = 0
        static void init()
        """);
  }

  public static void theVersionIsToldAsTheOriginalDoes() {
    has(Version.class, """
        Version()
        static String version()
        static void init()
        """);
    Version.init();
    MindsporeLite.init();
    Check.that(
        Version.version().matches("MindSpore Lite \\d+\\.\\d+\\.\\d+\\S*"), Version.version());
  }

  // The class has exactly these public members.
  private static void has(Class<?> type, String wanted) {
    Set<String> found = new TreeSet<>();
    for (Constructor<?> constructor : type.getDeclaredConstructors()) {
      if (Modifier.isPublic(constructor.getModifiers())) {
        found.add(type.getSimpleName() + types(constructor.getGenericParameterTypes()));
      }
    }
    for (Method method : type.getDeclaredMethods()) {
      if (Modifier.isPublic(method.getModifiers())) {
        found.add(shown(method));
      }
    }
    for (Field field : type.getDeclaredFields()) {
      if (Modifier.isPublic(field.getModifiers())) {
        found.add(shown(field));
      }
    }
    Check.equal(
        String.join("\n", new TreeSet<>(wanted.lines().toList())), String.join("\n", found));
    Check.equal(Modifier.PUBLIC, type.getModifiers());
    Check.equal(Object.class, type.getSuperclass());
  }

  // "synchronized" is nobody's business; "final" or a checked exception would show.
  private static String shown(Method method) {
    int modifiers = method.getModifiers() & ~Modifier.PUBLIC & ~Modifier.SYNCHRONIZED;
    String thrown = Arrays.toString(method.getExceptionTypes());
    return (Modifier.toString(modifiers) + " " + name(method.getGenericReturnType()) + " "
        + method.getName() + types(method.getGenericParameterTypes())
        + (thrown.equals("[]") ? "" : " throws " + thrown))
        .strip();
  }

  private static String shown(Field field) {
    Check.equal(Modifier.PUBLIC | Modifier.STATIC | Modifier.FINAL, field.getModifiers());
    try {
      return field.getType() + " " + field.getName() + " = " + field.get(null);
    } catch (IllegalAccessException error) {
      throw new AssertionError(error);
    }
  }

  private static String types(Type[] types) {
    return Arrays.stream(types).map(ApiTest::name).collect(Collectors.joining(",", "(", ")"));
  }

  // Without packages.
  private static String name(Type type) {
    return type.getTypeName().replaceAll("[a-z]+\\.", "").replace(", ", ",");
  }
}
