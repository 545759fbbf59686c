// Package attachments hands the files that came with a message to the agent that is to
// work with them.
//
// The host keeps the files in its media store ([mediastore.Store]) and the message as it
// is. An agent needs paths it can open. There are two ways to get them:
//
//   - The harness runs unconfined on this machine: [Admission.PrepareInput] verifies paths
//     here.
//   - The workspace is elsewhere: a [WorkspacePreparer] copies the files over a bridge,
//     never over an existing file, below media/inbound of the workspace.
//
// Either answer is a [Note], one line per file. It is added to the text the harness
// executes ([ExecutionInput]) and to nothing else: prompt, transcript and media references
// stay what they are.
//
// [PrepareForWorkspace] is what the host calls before each attempt and each steering
// input. Where preparation is required it is all or nothing; whatever is refused or fails
// is [ErrDispatchBlocked], with the file and the reason.
//
// [Admission.ResolveInputMedia] and [Admission.PrepareContextMedia] give a harness the
// original facts of an input, and the attachments of an older message.
//
// # Names
//
// A sender chooses names and origins. In a note they stand as JSON strings in which
// nothing but printing characters is left as it is, so that no name can end its line or
// reorder it. In paths stands what [mediastore.CleanName] makes of them.
//
// # What it must not know
//
// It knows bridges, and no sandbox, backend or binding: the bridge is made by the host
// ([WorkspaceOptions.CreateBridge]), which has authorised it. It fetches no credentials and
// downloads nothing. Keeps ATT-34.
//
// Keeps ATT-01 to ATT-42.
package attachments
