import fc from 'fast-check';
import { nastyValue, slippedIn } from './nasty.ts';
import { changedAt, isRecord, Members, placesOf, Raw } from './text.ts';

type BodyChange = (value: unknown) => unknown;

const replaced = fc.tuple(fc.nat(), nastyValue).map(([position, nasty]): BodyChange => (value) => {
  const places = placesOf(value);
  return changedAt(value, places[position % places.length] ?? [], () => nasty);
});

const removed = fc.nat().map((position): BodyChange => (value) => {
  const places = placesOf(value).filter((place) => place.length > 0);
  return places.length === 0 ? value : changedAt(value, places[position % places.length] ?? [], () => undefined);
});

/** A member more, at any object of the body, first or last: `model` twice, `__proto__`, a price. */
const added = fc.tuple(fc.nat(), slippedIn, fc.boolean()).map(([position, pair, first]): BodyChange => (value) => {
  const places = placesOf(value);
  return changedAt(value, places[position % places.length] ?? [], (before) => {
    if (!isRecord(before) || before instanceof Members || before instanceof Raw) return before;
    const pairs = Object.entries(before);
    return new Members(first ? [pair, ...pairs] : [...pairs, pair]);
  });
});

/** Up to three changes of a body that was valid; often none. */
export const bodyChanges: fc.Arbitrary<BodyChange[]> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<BodyChange[]>([]) },
  { weight: 3, arbitrary: fc.array(fc.oneof(replaced, replaced, removed, added), { minLength: 1, maxLength: 3 }) },
);
