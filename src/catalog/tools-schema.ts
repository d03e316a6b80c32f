import { Type, type Static } from 'typebox';
import { search_apis } from './model.ts';
import { decimal, duration, httpUrl, secretText, section, text } from './schema-parts.ts';

/** Tools that the service runs itself for the models of chat. */

const per = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1, description }));

const web_search = section(
  {
    api: Type.Enum([...search_apis], { description: 'The search API.' }),
    base_url: Type.Optional(httpUrl({ description: 'Its address; searxng needs one. Default: the public one.' })),
    api_key: Type.Optional(secretText('env:NAME or file:/path; searxng needs none.')),
    price: decimal({ description: 'Price of a search that was answered, in the base currency.' }),
    per: per('Number of searches for this price.'),
    cost: Type.Optional(decimal({ description: 'What so many searches cost you, in the base currency, for margins.' })),
    results_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 20,
        default: 5,
        description: 'Results of a search that the model is given.',
      }),
    ),
    searches_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 20,
        default: 5,
        description: 'Searches of a call; a caller may ask for fewer.',
      }),
    ),
    timeout: Type.Optional(duration('1m', { default: '10s', description: 'For one search.' })),
    allow_private: Type.Optional(
      Type.Boolean({ default: false, description: 'The search API may have a private address.' }),
    ),
    models: Type.Optional(
      Type.Array(text({ description: 'Id of a model.' }), {
        uniqueItems: true,
        maxItems: 1_000,
        description: 'Models of chat that get the search. Default: all.',
      }),
    ),
  },
  { description: 'Web search for models whose upstream does not sell it.' },
);

const image_generation = section(
  {
    model: text({ description: 'Id of a model of images.' }),
    images_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 4,
        default: 1,
        description: 'Images of a call; a caller may ask for fewer.',
      }),
    ),
    timeout: Type.Optional(duration('10m', { default: '2m', description: 'For one image; its task goes on.' })),
  },
  { description: 'Images that models of chat make, for callers of the responses style.' },
);

export const tools = section(
  { web_search: Type.Optional(web_search), image_generation: Type.Optional(image_generation) },
  { description: 'Tools that the service runs for the models of chat.' },
);

export type WebSearchEntry = Static<typeof web_search>;
