import { useEffect, useMemo, useRef, useState } from 'react';
import type { PromptBody, PromptView } from '../../../../../src/dashboard/views/playground.ts';
import { blank_draft, type Draft } from '../Composer.tsx';
import { fieldsOf, withFields, type Settings } from '../conversation.ts';
import { filled, missingIn, variablesIn, type Values } from './template.ts';

type Options = {
  model: string;
  prompt: PromptView | undefined;
  settings: Settings;
  setSettings: (settings: Settings) => void;
};

/** The message and the system prompt as they are written, with their variables, and as they are sent. */
export function useTemplate({ model, prompt, settings, setSettings }: Options) {
  const [draft, setDraft] = useState<Draft>(blank_draft);
  const [values, setValues] = useState<Values>({});
  const [is_on, setOn] = useState(false);
  const opened = useRef<string>(undefined);
  const write = (body: PromptBody) => {
    setDraft((before) => ({ ...before, text: body.text }));
    setSettings({ ...withFields(settings, body.fields), system: body.system });
    setOn(true);
  };
  useEffect(() => {
    if (prompt?.id === opened.current) return; // a new version of it is what was written here
    opened.current = prompt?.id;
    if (prompt) write(prompt.body);
  });

  const names = is_on ? variablesIn(draft.text, settings.system) : [];
  const text = is_on ? filled(draft.text, values) : draft.text;
  const system = is_on ? filled(settings.system, values) : settings.system;
  const filled_draft = useMemo(() => (text === draft.text ? draft : { ...draft, text }), [draft, text]);
  const filled_settings = useMemo(
    () => (system === settings.system ? settings : { ...settings, system }),
    [settings, system],
  );
  const written: PromptBody = { model, system: settings.system, text: draft.text, fields: fieldsOf(settings) };
  return {
    draft,
    setDraft,
    values,
    setValues,
    names,
    missing: missingIn(names, values),
    has_variables: is_on,
    setHasVariables: setOn,
    filled_draft,
    filled_settings,
    written,
    restore: write,
    /** A prompt stays for the next values; any other message is gone from its box. */
    sent: () => setDraft((before) => (is_on && names.length > 0 ? { ...before, files: [] } : blank_draft)),
  };
}
