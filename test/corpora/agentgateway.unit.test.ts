import { testComparisons } from './compared.ts';
import { disagreements } from './disagreements.ts';
import { samplesIn } from './samples.ts';

testComparisons('agrees with another gateway, but where a reason is stated', samplesIn('agentgateway'), disagreements);
