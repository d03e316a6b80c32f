import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { groupBy, none, row, type Query, type Row } from './findings.ts';
import { readJournal, type BillNote, type ChatNote, type FaultNote, type Place, type SentNote } from './place.ts';
import { rates, token_prices } from './settings.ts';

type Entry = {
  account_id: string;
  key_id: string | null;
  ref: string;
  type: string;
  event: string;
  revenue: string;
  loss: string;
  topup_source: string;
};
type Call = {
  id: string;
  chat: ChatNote | undefined;
  bills: BillNote[];
  /** The upstream's bill, in the account's currency, and the caller's charge. */
  billed: number;
  charged: number;
  record: { cost: string; status: number } | undefined;
};
type Evidence = { faults: readonly FaultNote[] };

/** Compares the upstream's bills with the charges of callers, call by call; and checks what nobody may spend. */
export async function checkChat(ask: Query, place: Place): Promise<Row[]> {
  const { folder } = place;
  const entries = await ask<Entry>(
    `select account_id, key_id, ref, type, event, revenue, loss, topup_source from ledger_entries`,
  );
  const chats = readJournal<ChatNote>(folder, 'chats');
  const chat_entries = entries.filter(({ ref }) => ref.startsWith('req_'));
  const records = await ask<{ id: string; cost: string; status: number }>('select id, cost, status from chat_calls');
  const calls = callsOf(place, chats, chat_entries, records);
  const evidence = { faults: readJournal<FaultNote>(folder, 'faults') };
  const count = (outcome: ChatNote['outcome']) => chats.filter((chat) => chat.outcome === outcome).length;
  return [
    row(
      'chat: calls complete / left / refused / failed / broken / that reached nobody',
      (['complete', 'left', 'refused', 'failed', 'broken', 'unreached'] as const).map(count).join(' / '),
    ),
    row('chat: calls without max_tokens', chats.filter(({ max_tokens }) => max_tokens === undefined).length),
    ...leftRows(chats),
    ...billRows(place, calls, evidence),
    none('chat: refused calls that were charged', refusedAndCharged(chats, calls)),
    none('chat: charged calls whose record is missing or differs', oddRecords(calls, evidence)),
    none('chat: calls that were charged twice', chargedTwice(chat_entries)),
    none('keys that spent more than their limit', beyondLimits(place, entries)),
    none('accounts that spent more than they had', beyondBalances(entries)),
    row('chat: lost beyond balance and limit', lossOf(chat_entries), lossesOf(chat_entries)),
    none('ends of calls left in a journal', journalsIn(folder)),
  ];
}

function callsOf(
  { folder, accounts }: Place,
  chats: readonly ChatNote[],
  entries: readonly Entry[],
  records: readonly { id: string; cost: string; status: number }[],
): Call[] {
  const currency_of = new Map(accounts.map(({ id, currency }) => [id, currency]));
  const by_call = new Map(chats.map((chat) => [chat.call, chat]));
  const bills_of = groupBy(billsOf(folder), ({ call }) => call);
  const entries_of = groupBy(entries, ({ ref }) => ref);
  const record_of = new Map(records.map((record) => [record.id, record]));
  const call_of = new Map(readJournal<SentNote>(folder, 'sent').map((sent) => [sent.request_id, sent.call]));
  const ids = new Set([...call_of.keys(), ...entries_of.keys()]);
  return [...ids].map((id) => {
    const call = call_of.get(id) ?? '';
    const chat = by_call.get(call);
    const bills = bills_of.get(call) ?? [];
    const rate = rates[currency_of.get(chat?.account_id ?? '') ?? 'USD'];
    const tokens = bills.reduce(
      (sum, bill) => sum + bill.input_tokens * token_prices.input + bill.output_tokens * token_prices.output,
      0,
    );
    const charged = (entries_of.get(id) ?? []).reduce((sum, each) => sum + chargeOf(each), 0);
    return { id, chat, bills, billed: Math.round(tokens * rate), charged, record: record_of.get(id) };
  });
}

/** The last word about each request: what is billed, or only that it came. */
function billsOf(folder: string): BillNote[] {
  return [...new Map(readJournal<BillNote>(folder, 'bills').map((note) => [note.number, note])).values()];
}

function chargeOf({ type, revenue, loss }: Entry): number {
  return type === 'settle' ? Number(revenue) + Number(loss) : 0;
}

function leftRows(chats: readonly ChatNote[]): Row[] {
  const left = groupBy(
    chats.filter(({ outcome }) => outcome === 'left'),
    ({ order, stream }) => `${order.leaves_at} of ${stream ? 'streams' : 'whole answers'}`,
  );
  return [...left]
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([point, notes]) => row(`chat: callers who left: ${point}`, notes.length));
}

/** Returns the reason why a bill differs from its caller's charge, as docs/chat-billing.md has it; undefined if nothing there allows it. */
function reasonOf(call: Call, evidence: Evidence): string | undefined {
  const { bills, charged, chat, record } = call;
  const way = bills[0]?.way;
  if (bills.some(({ ended }) => ended === 'under way')) return 'the upstream died, so its bill is not known';
  if (charged === 0 && !record && nodeDied(call, evidence)) return 'its node died before the end of the call was noted';
  if (charged === 0 && (way === 'break' || way === 'silent' || way === 'cut'))
    return 'the upstream broke off or fell silent before any content';
  if (way === 'cut') return 'the upstream broke off in the middle: charged is what was received';
  if (way === 'no usage') return 'the upstream told no usage: it is counted';
  if (record?.status === 499 && chat && isLetGo(chat))
    return 'its caller left and the upstream was let go: counted is what came';
  if ((record?.status === 499 || record?.status === 503) && stopped(call, evidence))
    return 'the service stopped: counted is what came';
  return undefined;
}

/** Whole answers are read to their end without their caller, and so are streams of which more is worth knowing. */
function isLetGo({ outcome, stream, model, order: { leaves_at } }: ChatNote): boolean {
  const has_ended = leaves_at === 'finish reason' || leaves_at === 'usage';
  return outcome === 'left' && stream && model !== 'chaos/think' && !has_ended;
}

/** So long after its caller has left a call may be read on: the `total` of two routes. */
const read_on_ms = 40_000;

function nodeDied(call: Call, { faults }: Evidence): boolean {
  return faults.some((each) => each.fault === 'kill -9 of an API' && isDuring(call, each));
}

function stopped(call: Call, { faults }: Evidence): boolean {
  return faults.some((each) => each.fault === 'rolling restart by SIGTERM' && isDuring(call, each, each.ended_at_ms));
}

function isDuring({ chat }: Call, { at_ms, target }: FaultNote, until_ms = at_ms): boolean {
  if (!chat || (target.startsWith('api-') && target !== `api-${chat.api + 1}`)) return false;
  return until_ms >= chat.at_ms && at_ms <= chat.ended_at_ms + read_on_ms;
}

function billRows({ accounts }: Place, calls: readonly Call[], evidence: Evidence): Row[] {
  const currency_of = new Map(accounts.map(({ id, currency }) => [id, currency]));
  const sums = (chosen: readonly Call[], of: (call: Call) => number) =>
    (['USD', 'PLN'] as const)
      .map((currency) => {
        const own = chosen.filter(({ chat }) => currency_of.get(chat?.account_id ?? '') === currency);
        return `${(own.reduce((sum, call) => sum + of(call), 0) / 1e6).toFixed(6)} ${currency}`;
      })
      .join(', ');
  const different = calls.filter(({ billed, charged }) => billed !== charged);
  const by_reason = groupBy(different, (call) => reasonOf(call, evidence) ?? '');
  const unexplained = (by_reason.get('') ?? []).map(
    ({ id, billed, charged, chat, bills, record }) =>
      `${id}: billed ${billed}, paid ${charged}; ${JSON.stringify({ record, bills, chat })}`,
  );
  by_reason.delete('');
  return [
    row(
      'chat: what the upstream bills',
      sums(calls, ({ billed }) => billed),
    ),
    row(
      'chat: what callers paid',
      sums(calls, ({ charged }) => charged),
    ),
    row('chat: calls whose bill is what was paid, to the millionth', calls.length - different.length),
    ...[...by_reason]
      .toSorted(([one], [other]) => one.localeCompare(other))
      .map(([reason, own]) =>
        row(
          `chat: ${reason}`,
          `${own.length} calls, billed and not paid: ${sums(own, (call) => call.billed - call.charged)}`,
        ),
      ),
    none('chat: calls whose bill is not what was paid, for no reason', unexplained),
  ];
}

function refusedAndCharged(chats: readonly ChatNote[], calls: readonly Call[]): string[] {
  const charged = new Map(calls.filter((call) => call.charged > 0).map((call) => [call.id, call.charged]));
  return chats
    .filter(({ outcome, request_id }) => outcome === 'refused' && charged.has(request_id))
    .map(({ request_id, status }) => `${request_id}: ${status}, and ${charged.get(request_id)} charged`);
}

function oddRecords(calls: readonly Call[], evidence: Evidence): string[] {
  return calls
    .filter((call) => {
      if (call.record) return Number(call.record.cost) !== call.charged;
      return call.charged > 0 && !nodeDied(call, evidence);
    })
    .map(({ id, charged, record }) => `${id}: ${charged} charged, the record says ${record?.cost}`);
}

function chargedTwice(entries: readonly Entry[]): string[] {
  const settled = groupBy(
    entries.filter(({ type }) => type === 'settle'),
    ({ ref }) => ref,
  );
  return [...settled].filter(([, own]) => own.length > 1).map(([ref, own]) => `${ref}: ${own.length} times`);
}

function beyondLimits({ accounts }: Place, entries: readonly Entry[]): string[] {
  const of_key = groupBy(entries, ({ key_id }) => key_id ?? '');
  return accounts.flatMap(({ keys }) =>
    keys.flatMap(({ id, limit }) => {
      const spent = (of_key.get(id) ?? []).reduce((sum, entry) => sum + chargeOf(entry), 0);
      return spent > Number(limit) ? [`${id} spent ${spent}, and may spend ${limit}`] : [];
    }),
  );
}

function beyondBalances(entries: readonly Entry[]): string[] {
  return [...groupBy(entries, ({ account_id }) => account_id)].flatMap(([id, own]) => {
    const spent = own.reduce((sum, entry) => sum + chargeOf(entry), 0);
    const paid_in = -own.reduce((sum, entry) => sum + Number(entry.topup_source), 0);
    return spent > paid_in ? [`${id} spent ${spent}, and had ${paid_in}`] : [];
  });
}

function lossOf(entries: readonly Entry[]): string {
  return (entries.reduce((sum, { loss }) => sum - Number(loss), 0) / 1e6).toFixed(6);
}

/** A hold that was given back since its node seemed dead leaves its call what is available, and no more. */
function lossesOf(entries: readonly Entry[]): string[] {
  return entries
    .filter(({ loss, event }) => Number(loss) !== 0 && event !== 'late')
    .map(({ ref, loss }) => `${ref}: ${loss}`);
}

function journalsIn(folder: string): string[] {
  const path = join(folder, 'data', 'journal');
  return existsSync(path) ? readdirSync(path) : [];
}
