/** Programs that send one request, in several languages: each with nothing but what comes with the language, or all but. */

export type Sample = { name: string; text: string };

export type SampleCall = {
  url: string;
  body: Record<string, unknown>;
  /** Members of the answer that are printed, such as `choices`, 0, `message`. */
  shown: readonly (readonly (string | number)[])[];
};

export function samplesIn(call: SampleCall): Sample[] {
  return [curl(call), python(call), typescript(call), go(call), java(call), php(call)];
}

/** JSON without signs that some language does not allow within its texts. */
function jsonOf(body: object): string {
  const text = JSON.stringify(body, undefined, 2);
  return text.replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function curl({ url, body }: SampleCall): Sample {
  const text = `curl -sS '${url}' \\
  -H "Authorization: Bearer $MEDLEY_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '${jsonOf(body).replaceAll("'", `'\\''`)}'`;
  return { name: 'curl', text };
}

function python({ url, body, shown }: SampleCall): Sample {
  const text = `import os, requests

answer = requests.post(
    "${url}",
    headers={"Authorization": f"Bearer {os.environ['MEDLEY_API_KEY']}"},
    json=${pythonLiteral(body, 4)},
).json()
print(${shown.map((path) => `answer${indexed(path, '"')}`).join(', ')})`;
  return { name: 'Python', text };
}

function typescript({ url, body }: SampleCall): Sample {
  const text = `const response = await fetch('${url}', {
  method: 'POST',
  headers: {
    Authorization: \`Bearer \${process.env.MEDLEY_API_KEY}\`,
    'Content-Type': 'application/json',
  },
  body: JSON.stringify(${literal(body, 2)}),
});
console.dir(await response.json(), { depth: null });`;
  return { name: 'TypeScript', text };
}

function go({ url, body }: SampleCall): Sample {
  const text = `package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

const body = \`${jsonOf(body).replaceAll('`', '` + "`" + `')}\`

func main() {
	request, err := http.NewRequest("POST", "${url}", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("MEDLEY_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	fmt.Println(response.Status, string(answer))
}`;
  return { name: 'Go', text };
}

function java({ url, body }: SampleCall): Sample {
  const block = jsonOf(body).replaceAll('\\', '\\\\').replaceAll('"""', '""\\"').replaceAll('\n', '\n        ');
  const text = `import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Main {
  public static void main(String[] args) throws Exception {
    var body = """
        ${block}
        """;
    var request = HttpRequest.newBuilder(URI.create("${url}"))
        .header("Authorization", "Bearer " + System.getenv("MEDLEY_API_KEY"))
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(body))
        .build();
    var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(response.statusCode() + " " + response.body());
  }
}`;
  return { name: 'Java', text };
}

function php({ url, body, shown }: SampleCall): Sample {
  const text = `<?php
$body = <<<'JSON'
${jsonOf(body)}
JSON;
$curl = curl_init('${url}');
curl_setopt_array($curl, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_POSTFIELDS => $body,
    CURLOPT_HTTPHEADER => [
        'Authorization: Bearer ' . getenv('MEDLEY_API_KEY'),
        'Content-Type: application/json',
    ],
]);
$answer = json_decode(curl_exec($curl), true);
print_r([${shown.map((path) => `$answer${indexed(path, "'")}`).join(', ')}]);`;
  return { name: 'PHP', text };
}

function indexed(path: readonly (string | number)[], quote: string): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `[${quote}${step}${quote}]`)).join('');
}

/** A value of JavaScript, without quotes around names that need none. */
export function literal(value: unknown, indent: number): string {
  const text = JSON.stringify(value, undefined, 2).replaceAll(/^(\s*)"([A-Za-z_]\w*)":/gm, '$1$2:');
  return text.replaceAll('\n', `\n${' '.repeat(indent)}`);
}

/** Python writes three words of JSON otherwise; strings are the same. */
function pythonLiteral(value: unknown, indent: number): string {
  const pad = ' '.repeat(indent + 4);
  const end = ' '.repeat(indent);
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[\n${value.map((item) => `${pad}${pythonLiteral(item, indent + 4)},\n`).join('')}${end}]`;
  }
  if (typeof value === 'object') {
    const lines = Object.entries(value).map(([name, item]) => {
      return `${pad}${JSON.stringify(name)}: ${pythonLiteral(item, indent + 4)},\n`;
    });
    return lines.length === 0 ? '{}' : `{\n${lines.join('')}${end}}`;
  }
  return JSON.stringify(value);
}
