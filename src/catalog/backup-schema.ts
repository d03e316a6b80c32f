import { Type } from 'typebox';
import { duration, section } from './schema-parts.ts';

/** `backup` of `medley.yaml`. */
export const backup = section(
  {
    every: duration('30d', {
      description: 'Time from one backup to the next, at least a minute; 6h: at 0, 6, 12 and 18 o’clock, UTC.',
    }),
    keep: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000,
        default: 14,
        description: 'Backups that are kept; older ones that the service made go.',
      }),
    ),
    to: Type.String({
      pattern:
        '^(?:/[^\\0]{1,1000}|[A-Za-z]:[\\\\/][^\\0]{1,1000}|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9._-]{1,64}){0,8})$',
      errorMessage: 'must be an absolute path such as /var/backups/medley, or s3://BUCKET/PREFIX',
      description: 'A folder, or a bucket with the region, the endpoint and the credentials of storage.s3.',
    }),
  },
  { description: 'Backups that the service makes by itself.' },
);
