import { testComparisons } from './compared.ts';
import { differences_from_cliproxyapi } from './cliproxyapi-disagreements.ts';
import { samplesIn } from './samples.ts';

testComparisons(
  'agrees with a proxy of coding agents, but where a reason is stated',
  samplesIn('cliproxyapi'),
  differences_from_cliproxyapi,
);
