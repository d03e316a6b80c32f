import { afterAll, beforeAll, expect, it } from 'vitest';
import { setStage, type Stage } from '../../chat/setup.ts';
import { expectExactBooks } from '../../helpers/app.ts';
import { startSearchApi, type SearchServer } from '../../helpers/search-api.ts';
import { chatSamples, searchSamples } from './chat.ts';
import { differences, withoutDifferences, type Difference } from './differences.ts';
import { audioSamples, fileSamples, imageSamples, vectorSamples, videoSamples } from './media.ts';
import { brokenSamples, refusalSamples } from './refusals.ts';
import { conversationSamples, listSamples, responseSamples } from './stored.ts';
import { faultsOf, type Sample } from './vendor-types.ts';

/** Every kind of answer, event and error of the service against the types that its vendor publishes. */

let stage: Stage;
let search: SearchServer;

const more = (search_url: string) => `
  - id: acme/res
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: res-x, options: { responses: always } }]
tools: { web_search: { api: searxng, base_url: "${search_url}", price: "0.005", allow_private: true } }
`;

beforeAll(async () => {
  search = await startSearchApi();
  search.play(() => ({ results: [{ url: 'https://a.example/one', title: 'One', content: 'The first page.' }] }));
  stage = await setStage({ more: more(search.url) });
});
afterAll(async () => {
  await expectExactBooks(stage.test.app);
  await stage.stop();
  await search.stop();
});

const areas = [
  chatSamples,
  searchSamples,
  imageSamples,
  audioSamples,
  videoSamples,
  fileSamples,
  vectorSamples,
  responseSamples,
  conversationSamples,
  listSamples,
  refusalSamples,
  brokenSamples,
];

/** One of each type, with a member that no type has: what finds none of them would find nothing. */
function spoilt(samples: readonly Sample[]): Sample[] {
  const by_type = new Map(samples.map((sample) => [sample.type, sample]));
  return [...by_type].map(([type, { value }]) => ({
    what: `spoilt ${type}`,
    type,
    value: { ...(value as object), member_of_no_type: 1 },
  }));
}

it('every answer, event and error has the members of its vendor’s type, and no others but those that are meant', async () => {
  const seen = new Set<Difference>();
  const samples: Sample[] = [];
  for (const samplesOf of areas) samples.push(...(await samplesOf(stage)));
  const plain = samples.map((sample) => withoutDifferences(sample, seen));
  const spoilt_samples = spoilt(plain);
  const faults = faultsOf([...plain, ...spoilt_samples]);
  expect(faults.filter((fault) => !fault.startsWith('spoilt '))).toEqual([]);
  expect(faults.filter((fault) => fault.includes('member_of_no_type'))).toHaveLength(spoilt_samples.length);
  expect(differences.filter((difference) => !seen.has(difference) && !difference.sometimes)).toEqual([]);
});
