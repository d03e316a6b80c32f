import { Type } from 'typebox';
import { default_price_list } from './price-list.ts';
import { margin_pattern, section } from './schema-parts.ts';

/** The section `catalog` of `medley.yaml`. */
export const catalog = section(
  {
    default: Type.Optional(
      Type.Unsafe<boolean | string[]>({
        type: ['boolean', 'array'],
        items: { type: 'string' },
        uniqueItems: true,
        default: false,
        errorMessage: 'must be true, false or a list of providers',
        description:
          'Models of the default catalogue: of all providers with a key in the environment, of the listed ones, or none. Without a file: all.',
      }),
    ),
    margin: Type.Optional(
      Type.String({
        pattern: margin_pattern,
        errorMessage: 'must be a positive decimal in quotes, such as "1.2"',
        default: '1',
        description: 'Factor on the prices of the default catalogue, which are those of the upstreams.',
      }),
    ),
    check: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          'Whether prices, ends and names of models are compared once a day with a public price list and the lists of their providers. Nothing is changed by that.',
      }),
    ),
    price_list: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s]{1,2000}$',
        errorMessage: 'must be an http or https address',
        default: default_price_list,
        description: "Address of that price list, in the form of LiteLLM's.",
      }),
    ),
  },
  { description: 'The default catalogue.' },
);
