/** A bucket for files, as `medley.yaml` says it. */
export type BucketSettings = {
  readonly bucket: string;
  /** Absent: as the environment or the profile of the machine says. */
  readonly region?: string;
  /** Address of a server other than Amazon's. */
  readonly endpoint?: string;
  /** Begins the name of each object; empty, or with a slash at its end. */
  readonly prefix: string;
  /** The bucket stands in the path of an address, not in its host. */
  readonly force_path_style: boolean;
  /** References to secrets; absent: the SDK looks in all places that it knows. */
  readonly credentials?: { readonly access_key_id: string; readonly secret_access_key: string };
  /** Absent: as the bucket is configured. */
  readonly encryption?: Encryption;
  /** The server of the file behind a link: the service, or the bucket itself. */
  readonly links: LinkServing;
};

/** By the bucket, with its own key or with one of KMS. */
export type Encryption = { readonly algorithm: (typeof encryption_algorithms)[number]; readonly kms_key_id?: string };

export const encryption_algorithms = ['AES256', 'aws:kms', 'aws:kms:dsse'] as const;

export const link_servings = ['through', 'presigned'] as const;
export type LinkServing = (typeof link_servings)[number];

/** Returns the name of the bucket and its prefix as one address. */
export function placeOf({ bucket, prefix }: Pick<BucketSettings, 'bucket' | 'prefix'>): string {
  return `s3://${bucket}/${prefix}`;
}

/** The place of files. A disk is `shared` if the operator says that all nodes have the same one. */
export type StorageSettings =
  | { readonly type: 'disk'; readonly shared: boolean }
  | ({ readonly type: 's3' } & BucketSettings);
