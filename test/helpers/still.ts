import { setTimeout as sleep } from 'node:timers/promises';

const look_ms = 50;
const looks_alike = 3;

/** Waits until a number has been the same for 150 ms: what flows has stopped. Returns it. */
export async function untilStill(read: () => number): Promise<number> {
  let last = read();
  for (let alike = 0; alike < looks_alike;) {
    await sleep(look_ms);
    const now = read();
    alike = now === last ? alike + 1 : 0;
    last = now;
  }
  return last;
}
