import { Type, type Static } from 'typebox';
import { role_names } from '../accounts/roles.ts';
import { httpUrl, mapOf, secretText, section, text } from './schema-parts.ts';

const join = section(
  {
    account: Type.String({
      pattern: '^acct_[0-7][0-9a-hjkmnp-tv-z]{25}$',
      errorMessage: 'must be the id of an account: acct_ and 26 letters and digits',
      description: 'Id of the account.',
    }),
    role: Type.Optional(Type.Enum([...role_names], { description: 'Role of its new members.', default: 'viewer' })),
  },
  { description: 'The account whose members new people become.' },
);

const issuer = section(
  {
    issuer: Type.Optional(
      httpUrl({
        description:
          'Address of an OpenID Connect issuer; /.well-known/openid-configuration is below it. Not needed for google, microsoft and github.',
      }),
    ),
    tenant: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
        errorMessage: 'must be the id of a directory: 32 hexadecimal digits with dashes',
        description: 'microsoft: id of your directory (tenant). Only its people sign in.',
      }),
    ),
    name: Type.Optional(
      text({
        maxLength: 40,
        description: 'Name on the button. Default: Google, Microsoft, GitHub, or the host of the issuer.',
      }),
    ),
    client_id: text({ description: 'Id of this service there.' }),
    client_secret: secretText('env:NAME or file:/path of its secret there.'),
    email_domains: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$',
          errorMessage: 'must be a domain in lower case, such as example.com',
        }),
        {
          maxItems: 100,
          uniqueItems: true,
          description: 'Only people with a proved address of these domains. Default: all.',
        },
      ),
    ),
    verified_emails: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Every address of this issuer is proved, although it does not say so. Only for an issuer of your own.',
      }),
    ),
    trusts_second_factor: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Signing in there counts as a second factor, so none is asked for here.',
      }),
    ),
    auto_create: Type.Optional(
      Type.Enum(['no', 'account', 'join'], {
        default: 'no',
        description: 'New people are refused, get an account of their own, or join one.',
      }),
    ),
    join: Type.Optional(join),
  },
  { description: 'A service by which people sign in.' },
);

/** `sign_in` of `medley.yaml`. */
export const sign_in = section(
  {
    password: Type.Optional(
      Type.Boolean({ default: true, description: 'People sign in with passwords. False only beside an issuer.' }),
    ),
    passkeys: Type.Optional(
      Type.Boolean({ default: true, description: 'People sign in with passkeys, where the address allows them.' }),
    ),
    operators_need_second_factor: Type.Optional(
      Type.Boolean({ default: false, description: 'The pages of operators open only after a second factor.' }),
    ),
    issuers: Type.Optional(
      mapOf(
        {
          pattern: '^[a-z0-9][a-z0-9-]{0,31}$',
          errorMessage: 'must be named in 1 to 32 lower-case letters, digits and dashes',
        },
        issuer,
        { description: 'Issuers by name: google, microsoft, github, or one of OpenID Connect.', maxProperties: 20 },
      ),
    ),
  },
  { description: 'Ways to sign in to the dashboard.' },
);

export type SignInEntry = Static<typeof sign_in>;
export type IssuerOfSignIn = Static<typeof issuer>;
