import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { measureRerank, readRanking, readRerankRequest, renderRanking } from '../../src/styles/rerank.ts';
import { searchUnits } from '../../src/styles/search-units.ts';

describe('a search unit is a query with up to 100 documents', () => {
  const short = (count: number) => Array.from({ length: count }, () => 10);
  test.each([
    ['one document', 20, [10], undefined, 1],
    ['a hundred documents', 20, short(100), undefined, 1],
    ['a hundred and one', 20, short(101), undefined, 2],
    ['a hundred that just fit with the query', 20, short(100).fill(480), undefined, 1],
    ['a hundred with one that is split', 20, [...short(99), 481], undefined, 2],
    ['an empty document', 0, [0], undefined, 1],
    ['documents that are cut after 4,096 tokens', 0, short(11).fill(1_000_000), undefined, 1],
    ['documents that the request lets be longer', 0, [1_000_000], 1_000_000, 20],
    ['documents that the request cuts', 0, short(100).fill(1_000_000), 100, 1],
    ['a query longer than half a chunk', 499, short(50).fill(500), undefined, 1],
  ])('so %s', (_, query, documents, longest, expected) => {
    expect(searchUnits(query, documents, longest)).toBe(expected);
  });

  test('and what is held is never less than what is counted', () => {
    const texts = fc.array(fc.string({ maxLength: 2_000, unit: 'binary' }), { minLength: 1, maxLength: 150 });
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 600, unit: 'binary' }), texts, (query, documents) => {
        const size = measureRerank(readRerankRequest({ model: 'm', query, documents }));
        expect(size.search_units_most).toBeGreaterThanOrEqual(size.search_units_counted);
      }),
      { numRuns: 50 },
    );
  });
});

test('the query counts again for each document', () => {
  const request = readRerankRequest({ model: 'm', query: 'four', documents: ['1234567', { text: 'ż' }] });
  expect(measureRerank(request).text_size).toEqual({ ascii_bytes: 4 + 7 + 4, other_bytes: 2 });
});

describe('an answer', () => {
  const documents = ['a', 'b', 'c'];
  const read = (answer: unknown, count = 3) => readRanking(Buffer.from(JSON.stringify(answer)), { documents, count });
  const results = [
    { index: 2, relevance_score: 0.1 },
    { index: 0, relevance_score: 0.9 },
    { index: 1, relevance_score: -3.5 },
  ];

  test.each([
    ['Cohere, Jina, vLLM and others', { id: 'x', results }],
    ['Voyage', { object: 'list', data: results.map((each) => ({ ...each, document: 'a' })) }],
    ['text-embeddings-inference', results.map(({ index, relevance_score }) => ({ index, score: relevance_score }))],
  ])('of %s is read, best first', (_, answer) => {
    expect(read(answer).results.map(({ index }) => index)).toEqual([0, 2, 1]);
    expect(read(answer, 1).results).toEqual([{ index: 0, relevance_score: 0.9 }]);
  });

  test.each([
    ['is no JSON object', 7],
    ['has no results', {}],
    ['has too few results', { results: results.slice(1) }],
    ['names a document twice', { results: [results[0], results[0], results[1]] }],
    ['names a document that there is not', { results: [...results.slice(1), { index: 3, relevance_score: 1 }] }],
    ['names half a document', { results: [...results.slice(1), { index: 1.5, relevance_score: 1 }] }],
    ['has no score', { results: [...results.slice(1), { index: 2 }] }],
    ['has a score that is no number', { results: [...results.slice(1), { index: 2, relevance_score: '0.5' }] }],
  ])('that %s is none', (_, answer) => {
    expect(() => read(answer)).toThrow(/^The answer|^A result/);
  });

  test.each([
    ['search units of Cohere', { meta: { billed_units: { search_units: 2 } } }, [undefined, 2]],
    ['tokens of Cohere', { meta: { billed_units: { input_tokens: 7 }, tokens: { input_tokens: 9 } } }, [7, undefined]],
    ['tokens of Voyage and Jina', { usage: { total_tokens: 7 } }, [7, undefined]],
    ['both of OpenRouter', { usage: { total_tokens: 7, search_units: 1, cost: 0.1 } }, [7, 1]],
    [
      'counts that cannot be',
      { usage: { total_tokens: -1, search_units: 1e300, prompt_tokens: '7' } },
      [undefined, undefined],
    ],
    ['nothing', { usage: null, meta: [] }, [undefined, undefined]],
  ])('reports %s', (_, more, [input_tokens, search_units]) => {
    expect(read({ results, ...more })).toMatchObject({ input_tokens, search_units });
  });

  test("has the caller's own documents where these are asked for", () => {
    const mixed_documents = ['a', { text: 'b', page: 7 }];
    const request = readRerankRequest({ model: 'm', query: 'q', documents: mixed_documents, return_documents: true });
    const ranked = {
      results: [
        { index: 1, relevance_score: 1 },
        { index: 0, relevance_score: 0 },
      ],
    };
    const answer: unknown = JSON.parse(
      renderRanking(request, ranked, { id: 'i', model: 'm' }, { input_tokens: 3 }).toString(),
    );
    expect(answer).toEqual({
      object: 'list',
      id: 'i',
      model: 'm',
      results: [
        { index: 1, relevance_score: 1, document: { text: 'b', page: 7 } },
        { index: 0, relevance_score: 0, document: { text: 'a' } },
      ],
      usage: { prompt_tokens: 3, total_tokens: 3 },
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: 3 } },
    });
  });
});
