package com.mindspore.internal;

import java.util.List;

/**
 * A model that the worker has.
 *
 * @param model its number there
 * @param notes warnings for the user
 */
public record Built(int model, Description description, List<String> notes) {}
