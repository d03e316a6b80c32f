/** A member that waits for its answer. */
export type Waiter<Member, Answer> = {
  member: Member;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
};

/** Members of the same name never share a call: the later one waits a turn, and with it all later ones of its group. */
export type Names<Member> = { nameOf(member: Member): string; groupOf(member: Member): string };

type Taken<W> = { batch: W[]; rest: W[] };

/** The first ones in order, but of one name only the first: the rest wait a turn, and keep the order of their group. */
export function takeBatch<W extends { member: M }, M>(
  waiting: W[],
  batch_max: number,
  names: Names<M> | undefined,
): Taken<W> {
  if (!names) return { batch: waiting.slice(0, batch_max), rest: waiting.slice(batch_max) };
  const seen = new Set<string>();
  const waits = new Set<string>();
  const batch: W[] = [];
  const rest: W[] = [];
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
export function divideByGroups<W extends { member: M }, M>(
  waiting: readonly W[],
  groups: ReadonlySet<string>,
  groupOf: (member: M) => string,
): { others: W[]; in_groups: W[] } {
  const others: W[] = [];
  const in_groups: W[] = [];
  for (const waiter of waiting) (groups.has(groupOf(waiter.member)) ? in_groups : others).push(waiter);
  return { others, in_groups };
}
