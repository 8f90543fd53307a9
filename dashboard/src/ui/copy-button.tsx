import { useState } from 'preact/hooks';

/** Copies a text, and reports if the browser blocks it, for example over plain HTTP. */
export function CopyButton(props: {
  readonly label: string;
  readonly text: string | (() => Promise<string>);
}) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready');
  const copy = async (): Promise<void> => {
    try {
      const text = typeof props.text === 'string' ? props.text : await props.text();
      await navigator.clipboard.writeText(text);
      setState('copied');
    } catch {
      setState('failed');
    }
  };
  return (
    <span class="copy">
      <button type="button" onClick={() => void copy()}>
        {props.label}
      </button>
      <span role="status">
        {state === 'copied' && ' Copied.'}
        {state === 'failed' &&
          ' The browser blocked copying. Select the text and copy it manually.'}
      </span>
    </span>
  );
}
