import { expect, it } from 'vitest';
import { chosenLanguage } from '../../src/dashboard/chosen-language.ts';

const languages = ['en', 'pl'];

it.each([
  [undefined, undefined, 'en'],
  [undefined, 'pl', 'pl'],
  [undefined, 'pl-PL,pl;q=0.9,en-US;q=0.8,en;q=0.7', 'pl'],
  [undefined, 'de-DE, pl;q=0.5, en;q=0.4', 'pl'],
  [undefined, 'de, fr', 'en'],
  [undefined, 'en;q=0.5, PL', 'pl'],
  [undefined, 'pl;q=0, en', 'en'],
  [undefined, 'plx, en', 'en'],
  [undefined, ';;,=,q=,*', 'en'],
  ['medley_language=en', 'pl', 'en'],
  ['a=b; medley_language=pl', 'en', 'pl'],
  ['medley_language=../../etc', 'pl', 'pl'],
  ['medley_language=', undefined, 'en'],
  ['not_medley_language=pl', undefined, 'en'],
])('with the cookies %j and the languages %j of the browser, a page is in %s', (cookie, accepted, expected) => {
  expect(chosenLanguage({ cookie, 'accept-language': accepted }, languages)).toBe(expected);
});
