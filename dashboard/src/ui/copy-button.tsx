import { useState } from 'preact/hooks';

/** Copies a text. Where the browser does not let it, as over plain http, it says so. */
export function CopyButton(props: {
  readonly label: string;
  /** The text, or where it comes from when somebody wants it. */
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
        {state === 'failed' && ' The browser does not allow it: select it and copy.'}
      </span>
    </span>
  );
}
