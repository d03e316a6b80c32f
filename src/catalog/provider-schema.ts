import { Type } from 'typebox';
import { link_policies } from './model.ts';
import { httpUrl, mapOf, secretText, section, text } from './schema-parts.ts';

/** An upstream in `medley.yaml`. */

const header_names = {
  pattern:
    '^(?!(?:[Hh][Oo][Ss][Tt]|[Cc][Oo][Nn][Nn][Ee][Cc][Tt][Ii][Oo][Nn]|[Cc][Oo][Nn][Tt][Ee][Nn][Tt]-[Ll][Ee][Nn][Gg][Tt][Hh]|[Tt][Rr][Aa][Nn][Ss][Ff][Ee][Rr]-[Ee][Nn][Cc][Oo][Dd][Ii][Nn][Gg])$)[A-Za-z0-9-]{1,64}$',
  errorMessage: 'must be names of headers that a client may set',
};

const query_names = { pattern: '^[A-Za-z0-9._~-]{1,64}$', errorMessage: 'must be letters, digits or . _ ~ -' };

const requestText = Type.String({
  pattern: '^[\\x20-\\x7e]{1,4096}$',
  errorMessage: 'must be 1 to 4096 printable characters, or env:NAME or file:/path',
});

export const provider = section(
  {
    adapter: text({ description: 'The protocol that the upstream speaks.' }),
    base_url: Type.Optional(httpUrl({ description: "The upstream's address." })),
    api_key: Type.Optional(secretText('env:NAME or file:/path; the secret itself is never written in this file.')),
    headers: Type.Optional(
      mapOf(header_names, requestText, {
        description:
          'Sent with every request, in place of a header of the adapter with the same name. A value env:NAME or file:/path is a secret.',
      }),
    ),
    query: Type.Optional(
      mapOf(query_names, requestText, {
        description:
          'Added to the address of every request, such as api-version. A value env:NAME or file:/path is a secret.',
      }),
    ),
    allow_private: Type.Optional(
      Type.Boolean({ description: 'The upstream and its result links may have private addresses.', default: false }),
    ),
    links: Type.Optional(
      Type.Enum([...link_policies], {
        description:
          'Links of callers in chat: given to the upstream (pass), fetched by the service and sent as files (fetch), or refused. Default: fetch if allow_private is set, else pass.',
      }),
    ),
    max_active: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          'Images, videos and audio: runs that the upstream has at once; further tasks wait. Default: its published limit, if it has one.',
      }),
    ),
    per_minute: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          'Images, videos and audio: runs begun there in 60 seconds; further tasks wait. Default: its published limit, if it has one.',
      }),
    ),
  },
  { description: 'A configured upstream.' },
);
