import { Type } from 'typebox';
import { section } from './schema-parts.ts';

/** `status_page` of `medley.yaml`. */
export const status_page = section(
  {
    public: Type.Optional(
      Type.Boolean({
        description:
          'Anybody may see /status, without signing in: the models by name, and how they served, without numbers of calls.',
        default: false,
      }),
    ),
  },
  { description: 'The page that shows how each model serves.' },
);
