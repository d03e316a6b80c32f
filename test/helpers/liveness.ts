import type { Db } from '../../src/db/database.ts';
import type { Liveness } from '../../src/leases/liveness.ts';

/** Of a node that lives for as long as the test wants. */
export type TestLiveness = Liveness & {
  /** Added to both clocks. */
  skewed_ms: number;
  /** It says nothing from now on. */
  die(): Promise<void>;
  /** It has said nothing for so long that others believe it dead, and it knows. */
  lapse(): Promise<void>;
};

export function testLiveness(db: Db, node_id: string): TestLiveness {
  let session = 0;
  let is_live = false;
  const seen = async (at: string) => {
    await db.query('update lessees set seen_at = now() + $2::interval where node_id = $1', [node_id, at]);
  };
  let beating: Promise<void> | undefined;
  const begin = async () => {
    await db.query('select keep_leases($1)', [node_id]);
    await seen('1 hour');
    session += 1;
    is_live = true;
  };
  const liveness: TestLiveness = {
    skewed_ms: 0,
    now: () => ({
      elapsed_ms: performance.now() + liveness.skewed_ms,
      wall_ms: Date.now() + liveness.skewed_ms,
      session: is_live ? session : undefined,
    }),
    ensure: async () => {
      if (!is_live) await (beating ??= begin().finally(() => (beating = undefined)));
    },
    lapse: async () => {
      is_live = false;
      await seen('-9 s');
    },
    die: () => seen('0 s'),
    close: () => Promise.resolve(),
  };
  return liveness;
}
