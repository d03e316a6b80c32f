const SystemDate = Date;
let ahead_ms = 0;

const wrong = new Proxy(SystemDate, {
  construct: (target, values, maker) =>
    Reflect.construct(target, values.length === 0 ? [target.now() + ahead_ms] : values, maker),
  get: (target, name) => (name === 'now' ? () => target.now() + ahead_ms : Reflect.get(target, name)),
});

/** From now on the clock of this process is ahead by so many minutes, or behind: as on a system whose clock is wrong. */
export function setClock(minutes: number): void {
  ahead_ms = minutes * 60_000;
  globalThis.Date = minutes === 0 ? SystemDate : wrong;
}
