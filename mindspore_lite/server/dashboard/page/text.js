// Numbers as people read them.

export const PHASES = ["receive", "decode", "queue", "batch", "run", "encode", "send"];

const REASONS = {
  deadline: "deadline passed",
  cancelled: "cancelled",
  error: "run failed",
  crash: "process died",
  queue_full: "queue full",
  timeout: "waited too long",
  memory: "out of memory",
  not_ready: "not ready",
};

/** Why a request failed, in words; other texts stay as they are. */
export const reason = (name) => REASONS[name] ?? name;

/** The entries of an object of numbers, the highest first. */
export const byNumber = (numbers) => Object.entries(numbers).sort((a, b) => b[1] - a[1]);

export function count(value) {
  if (value < 10_000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  const [scale, unit] = value < 1e6 ? [1e3, "k"] : value < 1e9 ? [1e6, "M"] : [1e9, "G"];
  return `${(value / scale).toPrecision(3)} ${unit}`;
}

export function rate(value) {
  return value > 0 && value < 100 ? value.toFixed(1) : count(value);
}

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ms`;
}

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 || value >= 100 ? value.toFixed(0) : value.toPrecision(3)} ${units[at]}`;
}

export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [days, hours] = [Math.floor(whole / 86_400), Math.floor(whole / 3600) % 24];
  const [minutes, rest] = [Math.floor(whole / 60) % 60, whole % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${rest} s` : `${rest} s`;
}

export const ago = (time, now) => (now - time < 1 ? "just now" : `${duration(now - time)} ago`);

export const clock = (time) => new Date(time * 1000).toLocaleTimeString("en-GB");

export const percent = (part) => `${part > 0 && part < 0.01 ? "<1" : Math.round(part * 100)} %`;

export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
