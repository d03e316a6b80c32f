/** A member that waits for its answer. */
export type Waiter<Member, Answer> = {
  member: Member;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
};

/** Members of the same name never share a call: the later one waits for the next call, and with it all later ones of its group. */
export type Names<Member> = { nameOf(member: Member): string; groupOf(member: Member): string };

type BatchAndRest<Waiting> = { batch: Waiting[]; rest: Waiting[] };

/** Takes the first waiters in their order, but only one of each name: the rest waits for the next call, and keeps the order of each group. */
export function takeBatch<Waiting extends { member: Member }, Member>(
  waiting: Waiting[],
  batch_max: number,
  names: Names<Member> | undefined,
): BatchAndRest<Waiting> {
  if (!names) return { batch: waiting.slice(0, batch_max), rest: waiting.slice(batch_max) };
  const seen = new Set<string>();
  const waits = new Set<string>();
  const batch: Waiting[] = [];
  const rest: Waiting[] = [];
  for (const waiter of waiting) {
    if (batch.length === batch_max) break;
    const name = names.nameOf(waiter.member);
    const is_late = seen.has(name) || (waits.size > 0 && waits.has(names.groupOf(waiter.member)));
    seen.add(name);
    if (!is_late) batch.push(waiter);
    else {
      rest.push(waiter);
      waits.add(names.groupOf(waiter.member));
    }
  }
  return { batch, rest: rest.concat(waiting.slice(batch.length + rest.length)) };
}

/** Divides into the members of these groups and the others, each in their order. */
export function divideByGroups<Waiting extends { member: Member }, Member>(
  waiting: readonly Waiting[],
  groups: ReadonlySet<string>,
  groupOf: (member: Member) => string,
): { others: Waiting[]; in_groups: Waiting[] } {
  const others: Waiting[] = [];
  const in_groups: Waiting[] = [];
  for (const waiter of waiting) (groups.has(groupOf(waiter.member)) ? in_groups : others).push(waiter);
  return { others, in_groups };
}
