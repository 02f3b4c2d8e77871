/** How models are built and run: devices, threads, workers; and the constants for them. */
package com.mindspore.config;
