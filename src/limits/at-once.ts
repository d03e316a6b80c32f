/**
 * How many calls of one key are under way on this node. Whoever reads slowly holds a connection to an upstream
 * for as long as the call may last, and all keys share those.
 */
export type AtOnce = {
  /** Takes a place until what it answers is called; undefined if `limit` calls are under way. */
  enter(key_id: string, limit: number): (() => void) | undefined;
  /** Keys with calls under way. */
  size(): number;
};

export function makeAtOnce(): AtOnce {
  const under_way = new Map<string, number>();
  const leave = (key_id: string) => {
    const count = under_way.get(key_id) ?? 0;
    if (count > 1) under_way.set(key_id, count - 1);
    else under_way.delete(key_id);
  };
  return {
    enter: (key_id, limit) => {
      const count = under_way.get(key_id) ?? 0;
      if (count >= limit) return undefined;
      under_way.set(key_id, count + 1);
      let has_left = false;
      return () => {
        if (!has_left) leave(key_id);
        has_left = true;
      };
    },
    size: () => under_way.size,
  };
}
