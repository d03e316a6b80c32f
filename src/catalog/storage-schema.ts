import { Type, type Static } from 'typebox';
import { encryption_algorithms, link_servings } from '../storage/settings.ts';
import { httpUrl, secretText, section, text } from './schema-parts.ts';

const bucket = section(
  {
    bucket: Type.String({
      pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
      errorMessage: 'must be 3 to 63 lower-case letters, digits, dots and dashes',
      description: 'Name of the bucket.',
    }),
    region: Type.Optional(text({ description: 'Its region. Default: as the environment says, as in AWS_REGION.' })),
    endpoint: Type.Optional(httpUrl({ description: 'Address of an S3-compatible server. Default: that of Amazon.' })),
    prefix: Type.Optional(
      Type.String({
        pattern: '^(?!.*(?:^|/)\\.{1,2}(?:/|$))[A-Za-z0-9._-]{1,64}(?:/[A-Za-z0-9._-]{1,64}){0,7}$',
        errorMessage: 'must be names of letters, digits, dots, dashes and underscores, with slashes between them',
        description: 'Folder of the bucket in which all files are.',
      }),
    ),
    force_path_style: Type.Optional(
      Type.Boolean({ description: "The bucket is in the path of addresses, not in the host's name.", default: false }),
    ),
    access_key_id: Type.Optional(
      secretText('env:NAME or file:/path. Default: what the environment, a profile or the role of the machine has.'),
    ),
    secret_access_key: Type.Optional(secretText('env:NAME or file:/path; together with access_key_id.')),
    encryption: Type.Optional(
      Type.Enum([...encryption_algorithms], {
        description: 'Server-side encryption that is asked for. Default: as the bucket is configured.',
      }),
    ),
    kms_key_id: Type.Optional(text({ description: 'The key of KMS for encryption: aws:kms.' })),
    links: Type.Optional(
      Type.Enum([...link_servings], {
        description:
          'Files behind links go through the service, or the link leads on to a presigned one of the bucket.',
        default: 'through',
      }),
    ),
  },
  { description: 'A bucket of S3, or of a server that speaks its protocol. Read at the start.' },
);

/** `storage` of `medley.yaml`. */
export const storage = section(
  {
    shared: Type.Optional(
      Type.Boolean({
        description: 'Without a bucket: `files` of the data folder is on a disk that all nodes share.',
        default: false,
      }),
    ),
    s3: Type.Optional(bucket),
  },
  { description: 'The place of files. Without a bucket: the data folder.' },
);

export type BucketEntry = Static<typeof bucket>;
