// Files and events that the server refuses before any part of the page hears of them, and files that don't get there,
// told in a banner: Gradio, which sends them, shows it for a moment at best. A message goes back into the box.
import { refused } from "./composer.js";
import { tell } from "./notices.js";

const NOT_SENT = "The files could not be sent; see that they are not too large and the server is there, and choose them again.";
const NOT_HEARD = "This could not be sent; see that it is not too long and the server is there, and try again.";
const send = window.fetch;

window.fetch = async (...args) => {
  const address = args[0]?.url ?? args[0];
  const upload = /gradio_api\/upload(\?|$)/.test(address);
  const event = /gradio_api\/queue\/join(\?|$)/.test(address);
  try {
    const answer = await send(...args);
    if (upload && !answer.ok) tell((await answer.clone().text()) || NOT_SENT);
    if (event && !answer.ok) giveBack(readable(await answer.clone().text()));
    return answer;
  } catch (error) {
    if (upload) tell(NOT_SENT);
    if (event) giveBack();
    throw error;
  }
};

function giveBack(sentence) {
  tell(sentence || NOT_HEARD);
  refused();
}

// What is no sentence, such as JSON, isn't for people.
const readable = (text) => (/^\s*[{[<]/.test(text) ? "" : text.trim());
