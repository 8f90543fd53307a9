import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { may } from '../../session.ts';

/** Makes a fingerprint of a key that is typed in. The key is sent to Headgate once and kept nowhere. */
export function FingerprintHelper({ use }: { readonly use: (fingerprint: string) => void }) {
  const [key, setKey] = useState('');
  const [said, setSaid] = useState<string | null>(null);
  const isAllowed = may('operator');
  const make = async (): Promise<void> => {
    const result = await api('fingerprint', { body: { key: key.trim() } });
    if (!result.ok) {
      setSaid(result.problem.detail);
      return;
    }
    setKey('');
    setSaid(`Its fingerprint is ${result.body.fingerprint}, and stands in the field above.`);
    use(result.body.fingerprint);
  };
  return (
    <details class="fingerprint">
      <summary>Fingerprint a key</summary>
      <label for="fingerprint-key">Provider key</label>
      <div class="beside">
        <input
          id="fingerprint-key"
          type="password"
          autocomplete="off"
          value={key}
          disabled={!isAllowed}
          onInput={({ currentTarget }) => setKey(currentTarget.value)}
        />
        <button
          type="button"
          disabled={!isAllowed || key.trim() === ''}
          onClick={() => void make()}
        >
          Make
        </button>
      </div>
      <p class="help" role="status">
        {said ??
          (isAllowed
            ? 'It stands for the key in groups and here, and tells nothing of it.'
            : 'Needs the role operator.')}
      </p>
    </details>
  );
}
