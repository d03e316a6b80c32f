/** Lets so much work of one kind be under way, and so much of it for one name; what is more waits for its turn. */
export type Gate = {
  run<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** The same, but the work is left undone, and `undefined` answered, where its turn does not come within this time. */
  runWithin<T>(patience_ms: number, name: string, work: () => Promise<T>): Promise<T | undefined>;
  /** Nothing waits any longer under this name, except what would wait for ever. */
  dismiss(name: string): void;
  /** How much waits under this name. */
  waiting(name: string): number;
};

/** A gate with limits that never change. */
export function makeGate(limits: { at_once: number; at_once_per_name: number }): Gate {
  return openGate((own, all) => all < limits.at_once && own < limits.at_once_per_name);
}

/**
 * A gate in which a name has at most as much under way as is left free: one alone has half of all places, two have a
 * third each, and there is always room for the next.
 */
export function makeFairGate(places: number): Gate {
  return openGate((own, all) => own < places - all);
}

/** `mayRun`: whether one more may be under way beside so many of its own name, and of all. */
function openGate(mayRun: (own: number, all: number) => boolean): Gate {
  const running = new Map<string, number>();
  const waiting: { name: string; begin: () => void; giveUp: () => void }[] = [];
  let all = 0;
  const hasRoom = (name: string) => mayRun(running.get(name) ?? 0, all);
  const enter = (name: string) => {
    all += 1;
    running.set(name, (running.get(name) ?? 0) + 1);
  };
  const letIn = (): boolean => {
    const at = waiting.findIndex((each) => hasRoom(each.name));
    const [next] = at === -1 ? [] : waiting.splice(at, 1);
    if (!next) return false;
    enter(next.name); // at once: whoever comes now must not take the place
    next.begin();
    return true;
  };
  const leave = (name: string) => {
    all -= 1;
    const left = (running.get(name) ?? 1) - 1;
    if (left > 0) running.set(name, left);
    else running.delete(name);
    while (letIn()); // one that leaves a fair gate may make room for two: for another name, and for its own
  };
  const turnOf = (name: string, patience_ms: number) =>
    new Promise<boolean>((resolve) => {
      const giveUp = () => {
        clearTimeout(timer);
        waiting.splice(waiting.indexOf(waiter), 1);
        resolve(false);
      };
      const is_patient = patience_ms === Infinity;
      const timer = is_patient ? undefined : setTimeout(giveUp, patience_ms);
      const begin = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const waiter = { name, begin, giveUp: is_patient ? () => {} : giveUp };
      waiting.push(waiter);
    });
  const comeIn = async (name: string, patience_ms: number): Promise<boolean> => {
    if (!hasRoom(name)) return turnOf(name, patience_ms);
    enter(name);
    return true;
  };
  const doIt = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } finally {
      leave(name);
    }
  };
  return {
    dismiss(name) {
      for (const each of waiting.filter((other) => other.name === name)) each.giveUp();
    },
    waiting: (name) => waiting.filter((each) => each.name === name).length,
    async run(name, work) {
      await comeIn(name, Infinity);
      return doIt(name, work);
    },
    async runWithin(patience_ms, name, work) {
      return (await comeIn(name, patience_ms)) ? doIt(name, work) : undefined;
    },
  };
}
