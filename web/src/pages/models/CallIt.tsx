import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { chatSamples, samplesOf, wholeInput } from '../../ui/samples.ts';
import { ChatSamples, Samples } from '../../ui/Samples.tsx';

/** The code that calls a model, in several languages. */
export function CallIt({ model }: { model: ModelView }) {
  const { me } = usePlace();
  const input = wholeInput(model);
  return model.modality === 'chat' ? (
    <ChatSamples samplesIn={(style) => chatSamples(me.base_url, style, { model: model.id, ...input })} />
  ) : (
    <Samples samples={samplesOf({ base_url: me.base_url, model, input })} />
  );
}
