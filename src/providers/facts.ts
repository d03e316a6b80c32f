import type { CatalogOptions } from '../catalog/catalog.ts';
import { isMediaKind } from '../catalog/model.ts';
import { takesMedia } from './media-form.ts';
import type { Adapter } from './provider.ts';
import { wholeOptionProblems } from './http/chat-options.ts';

/** Facts about the adapters for the catalogue. */
export function adapterFacts(
  adapters: Record<string, Adapter>,
): Required<
  Pick<
    CatalogOptions,
    'adapters' | 'canServe' | 'checkOptions' | 'checkProvider' | 'fileOptions' | 'publishedLimits' | 'takesMedia'
  >
> {
  return {
    adapters: Object.keys(adapters),
    canServe: (adapter, kind) => adapters[adapter]?.serves(kind) ?? false,
    publishedLimits: (adapter) => adapters[adapter]?.limits ?? {},
    checkProvider: (entry) => adapters[entry.adapter]?.checkProvider?.(entry) ?? [],
    takesMedia: (adapter) => takesMedia(adapters[adapter]),
    fileOptions: (adapter) => adapters[adapter]?.file_options ?? [],
    checkOptions: (adapter, kind, options, output, input_fields) => {
      const code = adapters[adapter];
      if (kind === 'chat') return code?.checkChatOptions?.(options) ?? [];
      if (!isMediaKind(kind)) return wholeOptionProblems(kind, options);
      return code?.checkOptions?.(options, output, input_fields) ?? [];
    },
  };
}
