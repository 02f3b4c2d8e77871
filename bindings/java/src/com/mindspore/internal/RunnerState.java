package com.mindspore.internal;

import java.util.List;
import java.util.Map;

/**
 * What a RunnerConfig says at a moment; later changes of it are not seen.
 *
 * @param context null where there is none: the CPU with its defaults
 * @param configPath empty where there is none
 */
public record RunnerState(ContextState context, int workersNum,
    Map<String, Map<String, String>> configInfo, String configPath, List<Integer> deviceIds) {}
