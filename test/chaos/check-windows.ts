import { none, row, type Row } from './findings.ts';
import { first_for_one } from './hasty.ts';
import { readJournal, type FaultNote, type HastyNote, type Place } from './place.ts';
import { chat_per_minute } from './settings.ts';

const window_ms = 60_000;

/** So many answers before anything broke say that the key was asked often enough to use its window up. */
const answers_min = 80;

/** Looks at the window of the hasty caller: in no minute too many requests, and none refused while there is room. */
export function checkWindows(place: Place): Row[] {
  const notes = readJournal<HastyNote>(place.folder, 'hasty');
  const accepted = notes.filter(({ status }) => status === 400).toSorted((a, b) => a.at_ms - b.at_ms);
  return [
    row(
      'windows: requests of a hasty key / of them accepted / refused',
      [notes.length, accepted.length, notes.filter(({ status }) => status === 429).length].join(' / '),
    ),
    none(`windows: minutes with more than ${chat_per_minute} requests of a key`, overfull(accepted)),
    none('windows: room that lay with another node while nothing was broken', unused(place, notes)),
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

/** Until something breaks, and as long as only the nodes are asked that the first one's share has left too little. */
function unused({ folder, api_ports }: Place, notes: readonly HastyNote[]): string[] {
  if (api_ports.length === 1) return [];
  const sent = notes.toSorted((a, b) => a.at_ms - b.at_ms);
  const even_at = sent.findIndex(({ api }, i) => i >= first_for_one && api === 0);
  const broken_at_ms = Math.min(...readJournal<FaultNote>(folder, 'faults').map(({ at_ms }) => at_ms));
  const calm = (even_at === -1 ? sent : sent.slice(0, even_at)).filter(
    ({ ended_at_ms, status }) => ended_at_ms < broken_at_ms && [400, 429].includes(status),
  );
  const accepted = calm.filter(({ status }) => status === 400).length;
  if (calm.length < answers_min || accepted >= chat_per_minute) return [];
  return [`${accepted} of ${calm.length} were accepted, and ${chat_per_minute} may be`];
}
