import { none, row, type Row } from './findings.ts';
import { readJournal, type FaultNote, type HastyNote, type Place } from './place.ts';
import { chat_per_minute } from './settings.ts';

const window_ms = 60_000;

/** So many answers before anything broke say that the key was asked often enough to use its window up. */
const answers_min = 2 * chat_per_minute;

/** Looks at the window of the hasty caller: in no minute too many requests, and none refused while there is room. */
export function checkWindows({ folder }: Place): Row[] {
  const notes = readJournal<HastyNote>(folder, 'hasty');
  const accepted = notes.filter(({ status }) => status === 400).toSorted((a, b) => a.at_ms - b.at_ms);
  return [
    row(
      'windows: requests of a hasty key / of them accepted / refused',
      [notes.length, accepted.length, notes.filter(({ status }) => status === 429).length].join(' / '),
    ),
    none(`windows: minutes with more than ${chat_per_minute} requests of a key`, overfull(accepted)),
    none('windows: room that lay with another node while nothing was broken', unused(folder, notes)),
  ];
}

/** A request was accepted between when it was sent and when it was answered: those that certainly lie in one minute count. */
function overfull(accepted: readonly HastyNote[]): string[] {
  return accepted.flatMap(({ at_ms }, i) => {
    const until_ms = at_ms + window_ms;
    const within = accepted.slice(i).filter((each) => each.ended_at_ms <= until_ms).length;
    return within > chat_per_minute ? [`${within} from ${new Date(at_ms).toISOString()} on`] : [];
  });
}

function unused(folder: string, notes: readonly HastyNote[]): string[] {
  const broken_at_ms = Math.min(...readJournal<FaultNote>(folder, 'faults').map(({ at_ms }) => at_ms));
  const calm = notes.filter(({ ended_at_ms, status }) => ended_at_ms < broken_at_ms && [400, 429].includes(status));
  const accepted = calm.filter(({ status }) => status === 400).length;
  if (calm.length < answers_min || accepted >= chat_per_minute) return [];
  return [`${accepted} of ${calm.length} were accepted, and ${chat_per_minute} may be`];
}
