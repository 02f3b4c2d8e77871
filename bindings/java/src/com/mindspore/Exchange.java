package com.mindspore;

import com.mindspore.internal.Errors;
import com.mindspore.internal.Filled;
import com.mindspore.internal.TensorInfo;
import com.mindspore.internal.wire.Session;
import java.util.ArrayList;
import java.util.List;

/** Users' tensors become the inputs of a request, and its results users' tensors. */
final class Exchange {
  private Exchange() {}

  /** New tensors without data. */
  static List<MSTensor> describing(List<TensorInfo> infos, Session session) {
    List<MSTensor> tensors = new ArrayList<>();
    for (TensorInfo info : infos) {
      tensors.add(MSTensor.describing(info, session));
    }
    return tensors;
  }

  /** The data of inputs; the caller has a hold on each, to be released. */
  static List<Filled> contents(List<MSTensor> inputs, Session session) {
    List<Filled> found = new ArrayList<>(inputs.size());
    try {
      for (MSTensor input : inputs) {
        String what = "input " + found.size();
        if (input == null) {
          throw Errors.input(what + " is null");
        }
        found.add(input.content(what, session));
      }
      return found;
    } catch (Throwable error) {
      release(found);
      throw error;
    }
  }

  static void release(List<Filled> all) {
    all.forEach(filled -> filled.memory().release());
  }

  /** Refuses tensors that results cannot be given to; before anything is computed. */
  static void checkOutputs(List<MSTensor> outputs, int wanted) {
    if (outputs.isEmpty()) {
      return;
    }
    if (outputs.size() != wanted) {
      throw Errors.input("predict got " + outputs.size() + " output tensors, the model has "
          + wanted + "; give all of them, or an empty list");
    }
    for (int i = 0; i < wanted; ++i) {
      MSTensor output = outputs.get(i);
      if (output == null || output.isFreed()) {
        throw Errors.input("output " + i + (output == null ? " is null" : " was freed"));
      }
    }
  }

  /** Gives the results away, with the holds on them: to the tensors there, else to new ones. */
  static void deliver(List<Filled> results, List<MSTensor> outputs, Session session) {
    if (!outputs.isEmpty()) {
      if (results.size() != outputs.size()) {
        release(results);
        throw Errors.wire("the worker answered with " + results.size() + " outputs, there are "
            + outputs.size() + " tensors for them");
      }
      for (int i = 0; i < results.size(); ++i) {
        outputs.get(i).take(results.get(i));
      }
      return;
    }
    List<MSTensor> made = new ArrayList<>(results.size());
    for (Filled result : results) {
      made.add(MSTensor.holding(result, session));
    }
    try {
      outputs.addAll(made);
    } catch (UnsupportedOperationException error) {
      made.forEach(MSTensor::free);
      throw Errors.wrong("the list of outputs cannot be added to; give an empty ArrayList");
    }
  }
}
