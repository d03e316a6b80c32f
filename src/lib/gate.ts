/** Lets so much work of one kind be under way, and so much of it for one name; what is more waits for its turn. */
export type Gate = {
  run<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** How much waits under this name. */
  waiting(name: string): number;
};

export function makeGate(limits: { at_once: number; at_once_per_name: number }): Gate {
  const running = new Map<string, number>();
  const waiting: { name: string; begin: () => void }[] = [];
  let all = 0;
  const mayRun = (name: string) => all < limits.at_once && (running.get(name) ?? 0) < limits.at_once_per_name;
  const enter = (name: string) => {
    all += 1;
    running.set(name, (running.get(name) ?? 0) + 1);
  };
  const leave = (name: string) => {
    all -= 1;
    const left = (running.get(name) ?? 1) - 1;
    if (left > 0) running.set(name, left);
    else running.delete(name);
    const at = waiting.findIndex((each) => mayRun(each.name));
    const [next] = at === -1 ? [] : waiting.splice(at, 1);
    if (!next) return;
    enter(next.name); // at once: whoever comes now must not take the place
    next.begin();
  };
  return {
    waiting: (name) => waiting.filter((each) => each.name === name).length,
    async run(name, work) {
      if (mayRun(name)) enter(name);
      else await new Promise<void>((begin) => waiting.push({ name, begin }));
      try {
        return await work();
      } finally {
        leave(name);
      }
    },
  };
}
