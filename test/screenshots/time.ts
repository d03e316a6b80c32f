const RealDate = Date;
let shift_ms = 0;
let stopped_ms: number | undefined;

const now = () => stopped_ms ?? RealDate.now() + shift_ms;

/**
 * From now on this process takes it to be `at`, and time runs on from there: the service, its login library and
 * whatever else asks. PostgreSQL keeps its own time, by which jobs become due.
 */
export function setTime(at: string | number): void {
  shift_ms = new RealDate(at).getTime() - RealDate.now();
  globalThis.Date = new Proxy(RealDate, {
    construct: (real, args, target) => Reflect.construct(real, args.length === 0 ? [now()] : args, target),
    get: (real, name) => (name === 'now' ? now : Reflect.get(real, name)),
  });
}

/** Returns the time as it is for everybody else. */
export function realTime(): Date {
  return new RealDate();
}

/** It is `at` for ever, however long the pictures take. Only once the world is whole: what waits for an hour waits on. */
export function stopTime(at: string): void {
  stopped_ms = new RealDate(at).getTime();
}
