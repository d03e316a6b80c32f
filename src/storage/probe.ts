import { Semaphore } from '../concurrency/semaphore.ts';
import { assert } from '../lib/assert.ts';
import { MediaProcesses, work_timeout_ms, type MediaAnswer } from './media-processes.ts';
import { failed, type ProbeResult } from './probe-result.ts';
import { openReadable } from './read-requests.ts';

const crashed = failed('crashed', 'The parser crashed or ran out of memory.');
const too_long = failed('timeout', `Measuring took longer than ${work_timeout_ms.measure} ms.`);

/** So that one hostile file does not hold up all others: 3 s each, and callers can send sixty a minute. */
const processes_max = 3;

export type ProbeLimits = { measuring_processes: Semaphore; caller_files: Semaphore };

/** Files of callers never have all processes, and those of one account never all of the others: results must be measured. */
export function probeLimits(): ProbeLimits {
  return {
    measuring_processes: new Semaphore({ name: 'Processes that measure files', bound: processes_max }),
    caller_files: new Semaphore({ name: 'Measurements of input files', bound: processes_max - 1, key_bound: 1 }),
  };
}

/** Measures files, in processes of its own. */
export type Prober = {
  /**
   * Type, size, width, height and duration of a file, from its bytes (or those at a path, of which
   * only what is needed is read), never from its name. Files that cannot be measured answer with a
   * reason, within 1.5 s of a processor's time and 10 s of a clock's, and what a process needs to start,
   * whatever is in them. Rejects if the path cannot be read.
   */
  probe(origin: string | Uint8Array): Promise<ProbeResult>;
  /** The same, once more when it took too long or crashed: a busy machine does that, too. */
  probeAgain(origin: string | Uint8Array): Promise<ProbeResult>;
  /** The same for a file of a caller's, in the turn of its account. */
  probeForCaller(account_id: string, origin: string | Uint8Array): Promise<ProbeResult>;
  close(): void;
};

export function openProber({ measuring_processes, caller_files }: ProbeLimits = probeLimits()): Prober {
  const processes = new MediaProcesses({ limit: measuring_processes });
  const probe = async (origin: string | Uint8Array): Promise<ProbeResult> => {
    const file = await openReadable(origin);
    try {
      return resultOf(await processes.run('', file, 'measure'));
    } finally {
      await file.close();
    }
  };
  const probeAgain = async (origin: string | Uint8Array) => {
    const first = await probe(origin);
    const uncertain = !first.ok && (first.reason === 'timeout' || first.reason === 'crashed');
    return uncertain ? probe(origin) : first;
  };
  return {
    probe,
    probeAgain,
    probeForCaller: (account_id, origin) => caller_files.run(account_id, () => probeAgain(origin)),
    close: () => processes.close(),
  };
}

function resultOf(answer: MediaAnswer): ProbeResult {
  if (answer === 'crashed') return crashed;
  if (answer === 'timeout') return too_long;
  assert('ok' in answer, 'measuring answers with a measurement');
  return answer;
}
