import { Type } from 'typebox';
import {
  google_scope,
  hmac_algorithms,
  hmac_encodings,
  hmac_timestamps,
  data_collections,
  link_policies,
} from './model.ts';
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

const aws = section(
  {
    region: text({ description: 'Such as eu-central-1.' }),
    service: Type.Optional(text({ description: 'The name of the service in signatures.', default: 'bedrock' })),
    access_key_id: Type.Optional(
      secretText('env:NAME or file:/path. Default: what the environment, a profile or the role of the machine has.'),
    ),
    secret_access_key: Type.Optional(secretText('env:NAME or file:/path; together with access_key_id.')),
  },
  { description: 'Requests are signed for AWS.' },
);

const google = section(
  {
    service_account: Type.Optional(
      secretText('file:/path of the JSON of a service account, or env:NAME with its text.'),
    ),
    external_account: Type.Optional(
      secretText(
        'In its place, the JSON of an external account: workload identity federation, with a file or an address as its source.',
      ),
    ),
    scope: Type.Optional(text({ description: 'The scope of the tokens.', default: google_scope })),
  },
  { description: 'Tokens of a Google account, as Vertex AI takes them: one of the two.' },
);

const oauth = section(
  {
    token_url: httpUrl({ description: 'Address that gives tokens.' }),
    client_id: text({ description: 'Id of the client.' }),
    client_secret: secretText('env:NAME or file:/path.'),
    scope: Type.Optional(text({ description: 'The scope that is asked for.' })),
  },
  { description: 'Tokens by the client credentials grant of OAuth 2.0, as Microsoft Entra gives them.' },
);

const tencent = section(
  {
    secret_id: secretText('env:NAME or file:/path.'),
    secret_key: secretText('env:NAME or file:/path.'),
    service: text({ description: 'The name of the service in signatures, such as aiart.' }),
    region: Type.Optional(text({ description: 'Sent as X-TC-Region, such as ap-guangzhou.' })),
    version: Type.Optional(text({ description: 'Sent as X-TC-Version, such as 2022-12-29.' })),
    token: Type.Optional(secretText('env:NAME or file:/path: the token of temporary keys.')),
  },
  { description: 'Requests are signed for Tencent Cloud (TC3-HMAC-SHA256).' },
);

const volcengine = section(
  {
    access_key_id: secretText('env:NAME or file:/path.'),
    secret_access_key: secretText('env:NAME or file:/path.'),
    region: text({ description: 'Such as cn-north-1.' }),
    service: text({ description: 'The name of the service in signatures, such as cv.' }),
    session_token: Type.Optional(secretText('env:NAME or file:/path: the token of temporary keys.')),
  },
  { description: 'Requests are signed for Volcengine (HMAC-SHA256).' },
);

const hmac = section(
  {
    secret: secretText('env:NAME or file:/path: what requests are signed with.'),
    key_id: Type.Optional(secretText('env:NAME or file:/path: names the secret, as $key_id.')),
    algorithm: Type.Optional(
      Type.Enum([...hmac_algorithms], { description: 'Hash of the signature.', default: 'sha256' }),
    ),
    secret_encoding: Type.Optional(
      Type.Enum([...hmac_encodings], {
        description: 'How the bytes of the secret are written. Default: it is a text.',
      }),
    ),
    text: text({
      description: 'Template of what is signed, such as "$method\n$path\n$timestamp\n$body_sha256".',
    }),
    timestamp: Type.Optional(
      Type.Enum([...hmac_timestamps], {
        description: 'Form of $timestamp, since 1970 or ISO 8601.',
        default: 'seconds',
      }),
    ),
    encoding: Type.Optional(Type.Enum([...hmac_encodings], { description: 'Form of $signature.', default: 'hex' })),
    headers: Type.Optional(
      mapOf(header_names, requestText, { description: 'Headers with the signature: templates with $signature.' }),
    ),
    query: Type.Optional(
      mapOf(query_names, requestText, { description: 'The same for members of the query, added after those signed.' }),
    ),
  },
  { description: 'Requests are signed by HMAC over a text of your own making.' },
);

const credentials = section(
  {
    aws: Type.Optional(aws),
    google: Type.Optional(google),
    oauth: Type.Optional(oauth),
    tencent: Type.Optional(tencent),
    volcengine: Type.Optional(volcengine),
    hmac: Type.Optional(hmac),
  },
  { description: 'Credentials in place of api_key: one of these.' },
);

const tls = section(
  {
    cert: Type.Optional(
      secretText('file:/path or env:NAME: the certificate that is shown, with those above it, in PEM.'),
    ),
    key: Type.Optional(secretText('file:/path or env:NAME: its private key in PEM, without a passphrase.')),
    ca: Type.Optional(
      secretText('file:/path or env:NAME: authorities in PEM that are believed in place of the usual ones.'),
    ),
    server_name: Type.Optional(text({ description: 'The name in the certificate of the upstream, if it is another.' })),
  },
  { description: 'TLS with a certificate of our own, or with authorities of the operator. Read again by a reload.' },
);

/** A password stands in it as a reference, so it may have slashes there. */
const proxy_pattern =
  '^(?:env:[A-Za-z_][A-Za-z0-9_]*|file:(?:/|[A-Za-z]:[\\\\/]).+|https?://(?:[^\\s:@/]+(?::(?:env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\\s@]+))?@)?[^\\s@/?#]+/?)$';

export const provider = section(
  {
    adapter: text({ description: 'The protocol that the upstream speaks.' }),
    base_url: Type.Optional(httpUrl({ description: "The upstream's address." })),
    api_key: Type.Optional(secretText('env:NAME or file:/path; the secret itself is never written in this file.')),
    credentials: Type.Optional(credentials),
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
    proxy: Type.Optional(
      Type.String({
        pattern: proxy_pattern,
        errorMessage:
          'must be http(s)://host:port, with a password as user:env:NAME@host or user:file:/path@host; or env:NAME or file:/path of all of it',
        description:
          'An HTTP(S) proxy for this provider alone: http://host:port, http://user:env:NAME@host:port, or env:NAME or file:/path of the whole address.',
      }),
    ),
    tls: Type.Optional(tls),
    allow_private: Type.Optional(
      Type.Boolean({ description: 'The upstream and its result links may have private addresses.', default: false }),
    ),
    links: Type.Optional(
      Type.Enum([...link_policies], {
        description:
          'Links of callers in chat: given to the upstream (pass), fetched by the service and sent as files (fetch), or refused. Default: fetch if allow_private is set, else pass.',
      }),
    ),
    data_collection: Type.Optional(
      Type.Enum([...data_collections], {
        description:
          'Whether the upstream may keep and use what callers send; deny: by your contract with it, it does not. Callers who ask for deny get such providers alone. Default: allow.',
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
