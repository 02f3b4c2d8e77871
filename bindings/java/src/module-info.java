/**
 * Runs models of MindSpore in a worker process of mslite, with the classes of MindSpore Lite's Java
 * interface.
 */
module com.mindspore.lite {
  requires java.logging;

  exports com.mindspore;
  exports com.mindspore.config;
}
