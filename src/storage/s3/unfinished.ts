import type { Bucket } from './bucket.ts';

/** An upload in parts that is not completed: its parts cost money, and no list of objects shows them. */
type UnfinishedUpload = { Key: string; UploadId: string | undefined; Initiated: Date | undefined };

/** Aborts the uploads in parts below an address of the bucket that `isLeft` chooses. Returns how many. */
export async function abortUploads(
  bucket: Bucket,
  Prefix: string,
  isLeft: (upload: UnfinishedUpload) => boolean,
): Promise<number> {
  const { settings, sdk, client } = bucket;
  let aborted = 0;
  for (let markers: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {}; ;) {
    const request = { Bucket: settings.bucket, Prefix, ...markers };
    const page = await bucket.ask(() => client.send(new sdk.ListMultipartUploadsCommand(request)));
    for (const { Key = '', UploadId, Initiated } of page.Uploads ?? []) {
      if (!isLeft({ Key, UploadId, Initiated })) continue;
      const command = new sdk.AbortMultipartUploadCommand({ Bucket: settings.bucket, Key, UploadId });
      await bucket.askFor(() => client.send(command));
      aborted += 1;
    }
    if (!page.IsTruncated) return aborted;
    markers = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
  }
}
