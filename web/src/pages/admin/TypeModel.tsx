import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { OfferedModelView } from '../../../../src/dashboard/views/admin-providers.ts';
import type { Choice } from './offer-choice.ts';

const kinds = ['chat', 'embedding', 'rerank', 'moderation', 'image'];

/** Adds a model that the provider's list does not name. */
export function TypeModel({ add }: { add: (model: OfferedModelView, choice: Choice) => void }) {
  const [name, setName] = useState('');
  const [kind, setKind] = useState('chat');
  const upstream_model = name.trim();
  const submit = () => {
    const model = {
      upstream_model,
      id: upstream_model,
      name: null,
      kind,
      kinds,
      context_tokens: null,
      list_price: [],
      is_added: false,
    };
    add(model, { is_ticked: true, kind, amounts: {} });
    setName('');
  };
  return (
    <Group align="flex-end" gap="xs">
      <TextInput
        style={{ flex: '1 1 200px' }}
        label="A model that is not in the list"
        placeholder="Its name at the provider"
        maxLength={200}
        autoComplete="off"
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <NativeSelect
        aria-label="Kind of the model"
        data={kinds}
        value={kind}
        onChange={({ currentTarget }) => setKind(currentTarget.value)}
      />
      <Button variant="default" disabled={!/^\S+$/.test(upstream_model)} onClick={submit}>
        Put it into the list
      </Button>
    </Group>
  );
}
