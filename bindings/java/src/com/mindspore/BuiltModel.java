package com.mindspore;

import com.mindspore.internal.BuildRequest;
import com.mindspore.internal.Description;
import com.mindspore.internal.Errors;
import com.mindspore.internal.Filled;
import com.mindspore.internal.Forgotten;
import com.mindspore.internal.Remote;
import com.mindspore.internal.TensorInfo;
import com.mindspore.internal.wire.CallOptions;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What a Model has once it is built; one thread at a time, as the Model sees to. */
final class BuiltModel {
  private final Remote remote;
  private final Cleaner.Cleanable forgotten;
  private final long limitMs; // of a predict; 0: none
  private final List<MSTensor> inputs;
  private final List<MSTensor> outputs; // our own: users get others with the same data
  private Description description;

  BuiltModel(Model owner, BuildRequest request) {
    remote = Remote.built(request);
    forgotten = Forgotten.register(owner, remote::close);
    limitMs = remote.session().limitMs(remote.model());
    description = remote.description();
    inputs = Exchange.describing(description.inputs(), remote.session());
    outputs = Exchange.describing(description.outputs(), remote.session());
  }

  List<MSTensor> inputs() {
    for (int i = 0; i < inputs.size(); ++i) {
      if (inputs.get(i).isFreed()) { // programs free them between requests
        inputs.set(i, MSTensor.describing(description.inputs().get(i), remote.session()));
      }
    }
    return new ArrayList<>(inputs);
  }

  List<MSTensor> outputs() {
    List<MSTensor> copies = new ArrayList<>();
    for (int i = 0; i < outputs.size(); ++i) {
      copies.add(output(i));
    }
    return copies;
  }

  /** Null where there is none of that name. */
  MSTensor input(String name) {
    int found = names(description.inputs()).indexOf(name);
    return found < 0 ? null : inputs().get(found);
  }

  /** Null where there is none of that name. */
  MSTensor output(String name) {
    int found = outputNames().indexOf(name);
    return found < 0 ? null : output(found);
  }

  List<String> outputNames() {
    return names(description.outputs());
  }

  private static List<String> names(List<TensorInfo> infos) {
    List<String> names = new ArrayList<>();
    infos.forEach(info -> names.add(info.name()));
    return names;
  }

  void predict() {
    List<Filled> contents = Exchange.contents(inputs, remote.session());
    List<Filled> results;
    try {
      results = remote.session().predict(remote.model(), contents, CallOptions.within(limitMs));
    } finally {
      Exchange.release(contents);
    }
    Exchange.deliver(results, outputs, remote.session());
  }

  void resize(List<MSTensor> tensors, int[][] dims) {
    if (tensors == null || dims == null) {
      throw Errors.input("resize got null, wanted the inputs of the model and their shapes");
    }
    if (tensors.size() != inputs.size() || dims.length != inputs.size()) {
      throw Errors.input("resize got " + tensors.size() + " inputs and " + dims.length
          + " shapes, the model has " + inputs.size() + " inputs; give all of them");
    }
    List<long[]> shapes = new ArrayList<>();
    for (int i = 0; i < dims.length; ++i) {
      shapes.add(checked(i, dims[i]));
    }
    // a shape belongs to its tensor where that is the model's own, whatever the order
    List<long[]> ordered = new ArrayList<>(shapes);
    for (int i = 0; i < tensors.size(); ++i) {
      int own = inputs.indexOf(tensors.get(i));
      if (own >= 0) {
        ordered.set(own, shapes.get(i));
      }
    }
    description = remote.session().resize(remote.model(), ordered);
    describe(inputs, description.inputs());
    describe(outputs, description.outputs());
  }

  void free() {
    inputs.forEach(MSTensor::free);
    outputs.forEach(MSTensor::free);
    forgotten.clean();
  }

  private MSTensor output(int index) {
    MSTensor own = outputs.get(index);
    return own.hasData()
        ? MSTensor.holding(own.content("output " + index, remote.session()), remote.session())
        : MSTensor.describing(description.outputs().get(index), remote.session());
  }

  private static void describe(List<MSTensor> tensors, List<TensorInfo> infos) {
    for (int i = 0; i < tensors.size(); ++i) {
      if (!tensors.get(i).isFreed()) {
        tensors.get(i).describe(infos.get(i));
      }
    }
  }

  private static long[] checked(int index, int[] dims) {
    if (dims == null || Arrays.stream(dims).anyMatch(dim -> dim <= 0)) {
      throw Errors.input("resize gives input " + index + " the shape " + Arrays.toString(dims)
          + ", wanted dims of 1 or more");
    }
    return Arrays.stream(dims).asLongStream().toArray();
  }
}
